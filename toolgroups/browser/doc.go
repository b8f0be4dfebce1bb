// Package browser looks at web pages with a headless Chromium: for pages that need
// JavaScript, and for pictures of pages.
//
// Pages come from anywhere and run scripts, so a page has nothing but the public
// network. Each call gets a context of its own in the browser, without the cookies,
// storage and cache of others, and a proxy of its own on the loopback interface,
// through which all it does has to go: navigation, redirects, scripts, WebSockets.
// The proxy connects to public addresses only. What is no request (WebRTC, local
// files, the browser's own pages) is switched off. Chromium sees no environment
// variables of the bot, is started by the first call, and is ended when it has been
// idle. While a page is open, the memory of all its processes is watched: above a bound
// Chromium is killed, and the next call starts it anew.
//
// Chromium confines its own processes, except where the bot runs as root: there it
// refuses to, and is started with --no-sandbox. Run the bot as another user, or in a
// container of its own.
package browser
