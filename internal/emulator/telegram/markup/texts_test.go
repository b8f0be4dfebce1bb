package markup

import "strings"

// plainTexts are texts as people and bots write them, one a line, in the places where it is hard to say what is
// an address, a name, a command or a tag.
func plainTexts() []string { return strings.Split(strings.TrimSpace(texts), "\n") }

const texts = `
README.md
see README.md, main.go and setup.py.
script.sh && ./run.sh
lib.rs mod.rs src/main.rs
node.js vue.js next.config.js
index.ts app.tsx style.css
archive.zip image.mov
com.example.app
user.name os.name window.name
self.id obj.id
event.date
example.com
Example.com
EXAMPLE.COM
example.Com
example.cOm
hello.This is a sentence.And another
e.g. this, i.e. that
a.m. and p.m.
1.2.3.4
1.2.3.4:80
1.2.3.4:99999
1.2.3.4:8080/path
256.1.1.1
01.2.3.4
1.2.3
1.2.3.4.5
v1.2.3
3.14
10.5.com
http://localhost:3000
http://localhost.localdomain/x
http://intranet/page
http://a.b/c
https://example.org/path?x=1&y=2#frag
https://example.org/a_(b)_c
(https://example.org/a)
(see https://example.org/a.)
[https://example.org/a]
<https://example.org/a>
"https://example.org/a"
«https://example.org/a»
https://example.org/a, and
https://example.org/a.
https://example.org/a!
https://example.org/a?
https://example.org?
https://example.org/?
https://example.org#
https://example.org...
https://example.org:
https://example.org:443/x
https://example.org:0/x
https://example.org:00080/x
https://example.org:65536/x
HTTPS://EXAMPLE.ORG/X
HtTp://Example.Org
ftp://example.org/file
sftp://example.org/file
tftp://example.org
shttp://example.org
xhttp://example.org
git+https://example.org/x.git
git://example.org/x.git
ssh://git@example.org/x.git
git@example.org:me/x.git
https://user:pass@example.org/x
https://user@example.org
user:pass@example.org
mailto:a@example.org
a@example.org
A.B+c@example.org
a@b.co
a@b.c
a@localhost
a b@c.com d
a,b@c.com
a@b@c.com
x@a.b@c.com
a.b@c@d.com
me.com@
@me.com
Email:a@example.org
(a@example.org)
a@example.org.
a@-b.com
a@b-.com
a@example.museum
a@example.technology
ab_c@example.org
www.example.org
www.example
t.me/durov
t.me/+abc
telegram.me/x
tg://resolve?domain=x
tg://user?id=5
TG://resolve?domain=x.
xtg://a
tg://
tg://?x
tg://a-b_c/d(e).
ton://transfer/x
ton://x?
teiegram.org
http://teiegram.org/x
@durov
@abc
@abcd
@gif and @pic
@GIF
@a_b
@_abcd
@1234
(@durov)
,@durov,
x@durov
_@durov
-@durov
.@durov
@durov.
@durov's
@durov/x
@durov_
@durov-x
@durové
@durov@durov
@@durov
@` + "`durov`" + `
@abcdefghijklmnopqrstuvwxyz012345
@abcdefghijklmnopqrstuvwxyz0123456
/start
/start@bot
/start@ab
/start@my_bot now
/start@
/usr/bin
/usr /bin
/a/b
//x
x/y
x /y
/y/
/y.
/y<
>/y
(/help)
"/help"
-/help
./help
../help
~/help
/help,
/help-me
/help_me
/hélp
/12
/
1/2 and 3/4
and/or
#tag
#1
#1a
#a1
#_
#_a
#тег
#日本語
#tag#tag
#tag #tag2
x#tag
(#tag)
#tag.
#tag-two
#tag@channel
#tag@ab
##tag
#tag!
&#tag;
#नमस्ते
#a·b
#` + "\u200c" + `x
$USD
$usd
$USDs
$1INCH
$2INCH
$ABCDEFGH
$ABCDEFGHI
$USD@exchange
$USD5
US$USD
$$USD
($USD)
$5
$HOME/bin
$PATH
4111 1111 1111 1111
4111111111111111.com
12:30
12:30:45
bücher.de
bücher.example
http://bücher.example
пример.рф
xn--e1afmkfd.xn--p1ai
xn--a.xn--b
例え.jp
example.中国
☃.net
a→b.com
a–b.com
a—b.com
a…b.com
a` + "\u00a0" + `b.com
a` + "\u200b" + `b.com
a` + "\u200d" + `b.com
😀.com @durov
😀@durov /start #x
a_b.com
a.b_c.com
a_b.c.com
a-.com
-a.com
~a.com
a..com
.com
a.com.
a.com..
a.com/.
a.com/..
a.com?x
a.com#x
a.com:80
a.com:80.
a.com:x
a.com,b.com
a.com/b.com
a.com b.org;c.net
/a.com
#a.com
=a.com
*a.com*
_a.com_
|a.com|
{a.com/x}
{"url":"https://a.com/x"}
a.com/{x}
a.com/x]y
a.com/x}y
a.com/'x'
a.com/x` + "`" + `
` + "`a.com`" + `
x="a.com"
Makefile.am and config.in
file.txt data.json a.yaml
Dr.Who St.John
$a.com
%a.com
a.com%20b
C:\a.com
\\server\share.com
192.168.0.1/24
[::1]:80 fe80::1
foo.ck foo.bd foo.kh
foo.onion foo.local foo.test foo.internal
arpa.arpa
https://a.com/https://b.com
https://https://a.com
http://http.com
http:/a.com
http:a.com
https://.com
https://a.x
https://a.x1
https://a.1x
https://a.toolongbutfine
https://a.b-c
https://a_b.c_d
https://[::1]/x
https://a.com:80:90
a.com@b.com/c
a.com/@durov
@durov a.com/x #y /z $USD q@w.com
`

// htmlTexts are texts in the HTML of the Bot API: links as the service keeps them, formatting that overlaps, and what is
// refused.
func htmlTexts() []string {
	list := []string{
		"a &lt;b&gt; &amp; &quot;c&quot; &#33; &#x1F600; &nbsp; &lt", "&#0; &#x110000; &#99999999; &amp;amp;", "&#xD800;", "<b>&#55357;&#56832;</b>",
		"a < b", "<p>x</p>", "<b>x", "x</b>", "<b><i>x</b></i>", "<b", "<b>x</b", "<span>x</span>", `<span class="tg-spoiler">x</span>`, "<b><i>x</></>",
		`<a href=a/b>x</a>`, `<tg-emoji>x</tg-emoji>`, `<tg-emoji emoji-id="5">👍</tg-emoji>`, `<a ="x">y</a>`, `<a href="x`, `<a href`, "<B>x</b>", "<b >x</b >",
		"<b>a<i>b</i></b>", "<b>a</b><b>b</b>", "<b>a<b>b</b></b>", "<b>a <code>b</code> c</b>", "<b><code>a</code></b>", "<code><b>a</b></code>",
		"<i>a<pre>b</pre>c</i>", `<a href="http://a.com">x <code>y</code> z</a>`, `<code>x <a href="http://a.com">y</a></code>`,
		`<a href="http://a.com">x <a href="http://b.com">y</a></a>`, `<a href="http://a.com"><b>x</b></a>`, `<b><a href="http://a.com">x</a></b>`,
		"<blockquote>a <b>b</b> <code>c</code></blockquote>", "<blockquote>a<blockquote>b</blockquote></blockquote>", "<b><blockquote>a</blockquote></b>",
		"<blockquote expandable>q</blockquote>", `<blockquote expandable="">q</blockquote>`, `<pre><code class="language-go">x</code></pre>`,
		`<pre>y<code class="language-go">x</code></pre>`, `<code class="language-go">x</code>`, `<code class="language-go"><pre>x</pre></code>`, "<pre>x</pre>",
		"<s>a<u>b<tg-spoiler>c</tg-spoiler></u></s>", `<tg-time unix="1700000000" format="wDT">t</tg-time>`, `<tg-time unix="0">t</tg-time>`,
		`<tg-time unix="1700000000" format="x">t</tg-time>`, `<b>a <tg-time unix="5">t</tg-time></b>`, "<b></b>a", "😀 <b>b</b> 😀", "x <b>\r</b> y",
		"@\u202aann <b>\u030ab\r\u2029</b>\u0333\u033f \x01&#13;x<i>\r</i>", "<i>a</i>\r<i>b</i>",
		"<b>@durov</b> <code>@durov</code> /x <code>/x</code>", "<blockquote>see</blockquote>a.com", "<blockquote>see a.</blockquote>com", "a.<b>com</b>", "a.<code>com</code>",
	}
	for _, address := range []string{
		"http://a.com", "HTTP://A.Com/X", "https://a.com?x", "https://a.com#x", "a.com", "a.com/x", "A.com:080/x", "http://a.com:0/", "http://a.com:65536", "http://a.com:", "http://u:P@a.com",
		"mailto:a@b.com", "javascript:x", "ftp://a.com", "http://localhost", "http://localhost:3000/x", "http://[::1]/", "http://[::1%25a]/", "http://[1.2.3.4]/", "http://.", "http://a^b.c", "http://a.com/x y\tz ",
		"http://a.com/%zz", "http://a%2.com", "http://a%20b.com", "http://bücher.de/ü", "http://BÜCHER.de", "tg://resolve?domain=x", "TG:Resolve", "tg://resolve/?a", "tg://a.b", "tg:a:1", "tg://a#b", "ton://a/b",
		"tonsite://a.b/c", "tg://user?id=7", "TG:User/?x=1&amp;id=7", "tg://user?id=x", "tg://user", "tg://user?id=-1", "tg://users?id=7", "", " ", "/x", "#x", "?x", "//a.com",
	} {
		list = append(list, `<a href="`+address+`">x</a>`)
	}
	return append(list, "<a>a.com</a>", "<a>A.com/x</a>", "<a>x</a>")
}
