// Package browser opens web pages in a headless Chromium: for pages that need JavaScript, and
// for screenshots.
//
// Pages are untrusted and run scripts, so a page reaches only the public network. Each call gets
// its own browser context, without the cookies, storage and cache of others, and its own proxy
// on the loopback interface for all its traffic: navigation, redirects, scripts, WebSockets. The
// proxy connects to public addresses only. What bypasses proxies (WebRTC, local files, the
// browser's own pages) is switched off. Chromium gets no environment variables of the bot,
// starts with the first call, and ends when it has been idle. While a page is open, the memory
// of all its processes is watched: above a limit Chromium is killed, and the next call starts it
// anew.
//
// Chromium sandboxes its own processes, but refuses to as root: there it is started with
// --no-sandbox. Run the bot as another user, or in a container.
package browser
