// Serves PGlite as long as whoever waits for it at another port keeps the connection.
const fs = require('fs'), net = require('net'), { PGlite } = require('@electric-sql/pglite'), { PGLiteSocketServer } = require('@electric-sql/pglite-socket');
const { port, connections, waiting } = JSON.parse(fs.readFileSync(0));
(async () => {
	await new PGLiteSocketServer({ db: await PGlite.create(), host: '127.0.0.1', port, maxConnections: connections }).start();
	net.connect(waiting, '127.0.0.1').on('close', () => process.exit(0)).resume();
})();
