// PDFs of two writers, each with the lines that pdf.js finds on its pages, and what its links, comments and fields say.
const { PDFDocument, StandardFonts, degrees, rgb } = require('pdf-lib'), PDFKit = require('pdfkit'), path = require('path');

const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const words = ['plain text', 'Umlauts: äöüß ÄÖÜ é', 'quotes “a” ‘b’ – — … €', 'brackets (a) [b] {c} \\ /', 'file fluff office', 'a | b', '<b>&amp;</b>', '1,234.50', 'a-b', 'x'.repeat(60)];
const lorem = 'The harbour handled one hundred and twenty ships in spring, and the crane was repaired. ';

const kit = (fill, options) => () => new Promise((done) => { const d = new PDFKit({ compress: false, ...options }), parts = []; d.on('data', (p) => parts.push(p)); d.on('end', () => done(Buffer.concat(parts))); fill(d); d.end(); });
const lib = (fill, options) => async () => { const d = await PDFDocument.create(); await fill(d, await d.embedFont(StandardFonts.Helvetica)); return Buffer.from(await d.save(options)); };

const cases = {
	'pdfkit lines.pdf': kit((d) => words.forEach((w) => d.text(w))),
	'pdfkit compressed.pdf': kit((d) => words.forEach((w) => d.text(w)), { compress: true }),
	'pdfkit wrapped.pdf': kit((d) => { d.text(lorem.repeat(6)); d.moveDown(); d.text(lorem.repeat(3), { align: 'justify' }); d.moveDown(); d.text(lorem, { align: 'right' }); }),
	'pdfkit pages.pdf': kit((d) => { for (let i = 1; i <= 12; i++) { if (i > 1) d.addPage({ layout: i % 2 ? 'portrait' : 'landscape' }); d.text('page ' + i); } }),
	'pdfkit fonts.pdf': kit((d) => ['Courier', 'Times-Roman', 'Helvetica-BoldOblique'].forEach((f) => d.font(f).fontSize(f.length).text('set in ' + f))),
	'pdfkit styled.pdf': kit((d) => { d.text('one ', { continued: true }).fillColor('red').text('red ', { continued: true }).fillColor('black').text('end'); d.text('wide', { characterSpacing: 1 }); d.text('far apart words', { wordSpacing: 10 }); d.text('linked', { link: 'https://a.example/', underline: true }); d.text('struck', { strike: true }); }),
	'pdfkit lists.pdf': kit((d) => d.list(['one', 'two', ['deep', 'deeper'], 'three'])),
	'pdfkit placed.pdf': kit((d) => { d.text('top left', 50, 50, { lineBreak: false }); d.text('top right', 400, 50, { lineBreak: false }); d.text('below', 50, 300); d.text('bottom', 50, 700); }),
	'pdfkit drawn.pdf': kit((d) => { d.rect(50, 50, 100, 100).fill('blue'); d.image(png, 200, 50, { width: 50 }); d.fillColor('black').text('caption', 50, 200); d.addPage(); d.rect(50, 50, 100, 100).stroke(); }),
	'pdfkit outline.pdf': kit((d) => { d.outline.addItem('Part'); d.text('with an outline'); d.note(50, 100, 50, 50, 'a note'); }, { info: { Title: 'Töten', Author: 'Ann' }, tagged: true, pdfVersion: '1.7' }),
	'pdfkit table.pdf': kit((d) => d.table({ data: [['Season', 'Ships'], ['Spring', '120'], ['Autumn', '95']] })),
	'pdfkit unicode.pdf': kit((d) => { d.font(path.join(path.dirname(require.resolve('pdfjs-dist/package.json')), 'standard_fonts', 'LiberationSans-Regular.ttf')).text('Zażółć gęślą jaźń Привет ώ'); }),
	'pdf-lib lines.pdf': lib((d, font) => { const p = d.addPage(); words.forEach((w, i) => p.drawText(w, { x: 50, y: 750 - 20 * i, size: 12, font })); }),
	'pdf-lib classic table.pdf': lib((d, font) => { const p = d.addPage(); words.forEach((w, i) => p.drawText(w, { x: 50, y: 750 - 20 * i, size: 12, font })); }, { useObjectStreams: false }),
	'pdf-lib wrapped.pdf': lib((d, font) => d.addPage().drawText(lorem.repeat(5), { x: 50, y: 700, size: 12, maxWidth: 400, lineHeight: 15, font })),
	'pdf-lib turned.pdf': lib((d, font) => { const p = d.addPage(); p.setRotation(degrees(90)); p.drawText('on a turned page', { x: 50, y: 700, font }); d.addPage().drawText('turned text', { x: 300, y: 300, rotate: degrees(90), font }); }),
	'pdf-lib form.pdf': lib((d, font) => { const p = d.addPage(); p.drawText('Name:', { x: 50, y: 700, font, size: 12 }); const f = d.getForm().createTextField('name'); f.setText('Ann Lee'); f.addToPage(p, { x: 100, y: 690, width: 200, height: 20, font }); }),
	'pdf-lib copied.pdf': lib(async (d, font) => { const o = await PDFDocument.create(); o.addPage().drawText('from another', { x: 50, y: 700 }); const [c] = await d.copyPages(o, [0]); d.addPage(c); d.addPage(); const [e] = await d.embedPdf(await o.save()); d.getPage(1).drawPage(e, { x: 0, y: -100 }); }),
	'pdf-lib faint.pdf': lib((d, font) => { const p = d.addPage(); p.drawText('white', { x: 50, y: 700, color: rgb(1, 1, 1), font }); p.drawText('tiny', { x: 50, y: 600, size: 1, font }); p.drawText('huge', { x: 50, y: 400, size: 90, font }); p.drawText('skewed', { x: 50, y: 300, xSkew: degrees(20), font }); }),
	'pdf-lib small pages.pdf': lib((d, font) => { [[200, 100], [2000, 3000]].forEach(([w, h]) => d.addPage([w, h]).drawText(`${w} by ${h}`, { x: 10, y: h - 50, size: 12, font })); d.addPage(); }),
};

(async () => {
	const { getDocument } = await import(require.resolve('pdfjs-dist/legacy/build/pdf.mjs'));
	const out = [];
	for (const [name, make] of Object.entries(cases)) {
		const data = await make(), pages = [], about = [];
		const d = await getDocument({ data: new Uint8Array(data), verbosity: 0 }).promise;
		for (let n = 1; n <= d.numPages; n++) {
			const page = await d.getPage(n), { items } = await page.getTextContent();
			pages.push(items.map((i) => i.str + (i.hasEOL ? '\n' : '')).join(''));
			for (const a of await page.getAnnotations()) about.push(a.url, a.fieldValue, a.contentsObj?.str);
		}
		out.push({ name, data: data.toString('base64'), pages, about: about.filter(Boolean) });
	}
	process.stdout.write(JSON.stringify(out));
})();
