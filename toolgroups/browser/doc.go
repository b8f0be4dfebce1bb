// Package browser opens web pages in a headless Chromium, to read pages that need JavaScript and
// to take screenshots.
//
// Pages are untrusted and run scripts, so a page reaches only the public network. Each call gets
// its own browser context, without the cookies, storage and cache of others, and its own proxy
// on the loopback interface for all its traffic: navigation, redirects, scripts, WebSockets. The
// proxy connects to public addresses only. Features that bypass proxies (WebRTC, local files, the
// browser's own pages) are switched off. Chromium gets no environment variables from the bot,
// starts with the first call, and ends when it has been idle. While a page is open, the memory
// of all Chromium processes is limited: above the limit Chromium is killed, and the next call
// starts a new one.
//
// Chromium sandboxes its own processes, but cannot when it runs as root. It is then started with
// --no-sandbox, so run the bot as another user, or in a container.
package browser
