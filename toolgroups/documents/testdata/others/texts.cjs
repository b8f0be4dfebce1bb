// Texts and slides of three writers, each with the lines that another reader finds in them, and what two find in
// those on the standard input. Lines of a rough reader are parted otherwise than ours.
const D = require('docx'), K = require('odf-kit'), P = require('pptxgenjs'), M = require('mammoth'), { parseOfficeAsync } = require('officeparser');

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const { Paragraph: Par, TextRun: Run } = D;
const p = (...children) => new Par({ children: children.map((c) => typeof c === 'string' ? new Run(c) : c) });
const cell = (text, more) => new D.TableCell({ children: [].concat(text).map((t) => typeof t === 'string' ? new Par(t) : t), ...more });
const table = (...rows) => new D.Table({ rows: rows.map((r) => new D.TableRow({ children: r.map((c) => typeof c === 'string' ? cell(c) : c) })) });
const levels = ['decimal', 'lowerLetter', 'lowerRoman', 'upperRoman', 'upperLetter'].map((format, level) => ({ level, format, text: `%${level + 1}.` }));
const legal = [0, 1, 2].map((level) => ({ level, format: 'decimal', text: ['%1.', '%1.%2.', '%1.%2.%3.'][level] }));
const numbering = { config: [{ reference: 'n', levels }, { reference: 'legal', levels: legal }, { reference: 'late', levels: [{ level: 0, format: 'decimal', text: '%1)', start: 5 }] }] };
const item = (text, level, reference = 'n', instance = 0) => new Par({ text, numbering: { reference, level, instance } });
const docx = (children, more) => () => D.Packer.toBuffer(new D.Document({ numbering, sections: [{ children }], ...more }));
const odt = (fill) => async () => { const d = new K.OdtDocument(); fill(d); return Buffer.from(await d.save()); };
const pptx = (fill) => () => { const d = new P(); fill(d); return d.write({ outputType: 'nodebuffer' }); };

const day = new Date(Date.UTC(2026, 2, 1));
const words = ['plain', 'two  spaces', 'a | pipe', '<b>&amp;</b>', '日本語', '😀 é', 'שלום', '# no heading', '- no item', '1. no number', '*stars*', 'x'.repeat(5000), 'soft\u00adhyphen', 'no\u2011break', '“quotes” – dashes…'];
const cases = {
	'docx paragraphs.docx': docx(words.map((w) => new Par(w))),
	'docx runs.docx': docx([p('a', new Run({ text: 'bold', bold: true }), new Run({ text: ' both ', italics: true, bold: true }), 'end'), p(new Run({ text: 'line', break: 1 }), new Run({ text: 'tab', children: [new D.Tab(), 'x'] })), p('x', new Run({ text: '2', superScript: true }), ' H', new Run({ text: '2', subScript: true }), 'O ', new Run({ text: 'gone', strike: true })), p(new Run({ text: 'caps', allCaps: true }), new Run({ text: ' small', smallCaps: true }))]),
	'docx headings.docx': docx([1, 2, 3, 4, 5, 6].map((n) => new Par({ text: 'Heading ' + n, heading: D.HeadingLevel['HEADING_' + n] })).concat(new Par('under'))),
	'docx lists.docx': docx([item('one', 0), item('a', 1), item('i', 2), item('I', 3), item('b', 1), item('two', 0), new Par('between'), item('three', 0), item('again', 0, 'n', 1), new Par({ text: 'dot', bullet: { level: 0 } }), new Par({ text: 'deep', bullet: { level: 2 } }), item('five', 0, 'late'), item('six', 0, 'late'), item('1', 0, 'legal'), item('1.1', 1, 'legal'), item('1.2', 1, 'legal'), item('1.2.1', 2, 'legal'), item('2', 0, 'legal'), item('2.1', 1, 'legal')]),
	'docx tables.docx': docx([table(['a', 'b|c'], ['d\te', '']), new Par('between'), table([cell('wide', { columnSpan: 2 }), 'x'], [cell('tall', { rowSpan: 2 }), 'y', 'z'], ['v', 'w']), table([cell(['one', 'two']), cell([table(['in', 'ner']), 'after'])], ['k', 'l'])]),
	'docx notes.docx': docx([p('one', new D.FootnoteReferenceRun(1), ' two', new D.FootnoteReferenceRun(2)), p('three')], { footnotes: { 1: { children: [new Par('first')] }, 2: { children: [new Par('second'), new Par('more')] } } }),
	'docx endnotes and comments.docx': docx([p('one', new D.EndnoteReferenceRun(1), ' two'), p(new D.CommentRangeStart(0), 'said', new D.CommentRangeEnd(0), new Run({ children: [new D.CommentReference(0)] }), ' on', new D.FootnoteReferenceRun(1))], { endnotes: { 1: { children: [new Par('last')] } }, footnotes: { 1: { children: [new Par('foot')] } }, comments: { children: [{ id: 0, author: 'Ann', date: day, children: [new Par('really?')] }] } }),
	'docx links.docx': docx([p(new D.ExternalHyperlink({ link: 'https://a.example/?a=1&b=2', children: [new Run('site')] }), ' and ', new D.InternalHyperlink({ anchor: 'here', children: [new Run('inside')] })), p(new D.Bookmark({ id: 'here', children: [new Run('target')] }))]),
	'docx tracked.docx': docx([p('kept ', new D.InsertedTextRun({ text: 'new', id: 1, author: 'Ann', date: '2026-03-01T00:00:00Z' }), new D.DeletedTextRun({ text: 'old', id: 2, author: 'Ann', date: '2026-03-01T00:00:00Z' }), ' end')]),
	'docx sections.docx': () => D.Packer.toBuffer(new D.Document({ sections: ['first', 'second'].map((t) => ({ headers: { default: new D.Header({ children: [new Par('head')] }) }, footers: { default: new D.Footer({ children: [new Par('foot')] }) }, children: [new Par(t), p(new D.PageBreak()), new Par('after ' + t)] })) })),
	'docx picture and box.docx': docx([p(new D.ImageRun({ type: 'png', data: Buffer.from(png, 'base64'), transformation: { width: 9, height: 9 }, altText: { title: 't', description: 'a crane', name: 'n' } }), 'beside'), new D.Textbox({ children: [new Par('boxed')], style: { width: '200pt', height: '20pt' } }), new D.TableOfContents('Contents'), p(new D.CheckBox({ checked: true }), 'done'), p(new D.SymbolRun('F0FC'))]),
	'odf-kit text.odt': odt((d) => { words.forEach((w) => d.addParagraph(w)); d.addHeading('Top', 1); d.addHeading('Sub', 2); d.addParagraph((b) => b.addText('a').addText('bold', { bold: true }).addText('2', { superscript: true })); d.addPageBreak(); d.addParagraph('after'); }),
	'odf-kit lists.odt': odt((d) => { d.addList(['one', 'two']); d.addList((l) => l.addItem('first').addNested((n) => n.addItem('deep')).addItem('second'), { type: 'numbered' }); d.addTable([['a', 'b'], ['c', 'd|e']]); d.addParagraph((b) => b.addLink('site', 'https://a.example/?a=1&b=2')); }),
	'odf-kit markdown.odt': async () => Buffer.from(await K.markdownToOdt('# Top\n\nText *with* **marks** and `code`.\n\n- a\n  - b\n- c\n\n1. x\n2. y\n\n| h | i |\n|---|---|\n| 1 | 2 |\n\n> quoted\n')),
	'pptxgenjs texts.pptx': pptx((d) => words.slice(0, 11).forEach((w) => d.addSlide().addText(w, { x: 1, y: 1, w: 5, h: 1 }))),
	'pptxgenjs boxes.pptx': pptx((d) => { const s = d.addSlide(); s.addText('upper', { x: 1, y: 1, w: 5, h: 1 }); s.addText([{ text: 'run one ', options: { bold: true } }, { text: 'run two', options: { breakLine: true } }, { text: 'next line' }], { x: 1, y: 3, w: 5, h: 1 }); s.addText([{ text: 'item', options: { bullet: true } }, { text: 'below', options: { bullet: true, indentLevel: 1 } }, { text: 'numbered', options: { bullet: { type: 'number' } } }], { x: 1, y: 5, w: 5, h: 1 }); }),
	'pptxgenjs tables.pptx': pptx((d) => { const s = d.addSlide(); s.addTable([['a', 'b|c'], ['d', 'e\nf']], { x: 1, y: 1, w: 5 }); s.addNotes('said of it'); d.addSlide().addTable([[{ text: 'wide', options: { colspan: 2 } }], ['x', 'y']], { x: 1, y: 1, w: 5 }); }),
	'pptxgenjs drawn.pptx': pptx((d) => { const s = d.addSlide(); s.addChart(d.charts.BAR, [{ name: 'Ships', labels: ['Spring', 'Autumn'], values: [120, 95] }], { x: 1, y: 1, w: 5, h: 3 }); s.addImage({ data: 'image/png;base64,' + png, x: 1, y: 1, w: 1, h: 1, altText: 'a crane' }); s.addText('site', { x: 1, y: 1, w: 1, h: 1, hyperlink: { url: 'https://a.example/?a=1&b=2' } }); s.addShape(d.shapes.RECTANGLE, { x: 1, y: 1, w: 1, h: 1 }); }),
	'pptxgenjs master.pptx': pptx((d) => { d.defineSlideMaster({ title: 'M', objects: [{ text: { text: 'on all', options: { x: 0, y: 0, w: 1, h: 1 } } }, { placeholder: { options: { name: 'body', type: 'body', x: 1, y: 1, w: 5, h: 3 }, text: 'prompt' } }] }); const s = d.addSlide({ masterName: 'M' }); s.addText('filled', { placeholder: 'body' }); d.addSlide({ masterName: 'M' }); const h = d.addSlide(); h.hidden = true; h.addText('hidden', { x: 1, y: 1, w: 1, h: 1 }); }),
};

// byMammoth returns the lines of a Word document.
async function byMammoth(buffer) {
	const lines = [];
	let notes = 0, pending = [];
	const read = (document) => {
		const text = (e) => {
			const inner = () => (e.children || []).map(text).join('');
			switch (e.type) {
			case 'text': return e.value;
			case 'tab': return '\t';
			case 'break': return e.breakType === 'line' ? '\n' : '';
			case 'image': return `[picture: ${e.altText}]`;
			case 'checkbox': return e.checked ? '☒' : '☐';
			case 'hyperlink': return e.href ? `${inner()} (${e.href})` : inner();
			case 'noteReference': { const n = ++notes; pending.push(`[^${n}]: ` + document.notes.resolve(e).body.map(text).join(' ').trim()); return `[^${n}]`; }
			case 'commentReference': { const c = document.comments.find((c) => c.commentId === e.commentId), n = ++notes; pending.push(`[^${n}]: comment of ${c.authorName}: ` + c.body.map(text).join(' ').trim()); return `[^${n}]`; }
			case 'run': {
				const raised = { superscript: '^', subscript: '_' }[e.verticalAlignment], all = inner();
				return e.isStrikethrough ? `~~${all}~~` : raised && /^\d/.test(all) ? raised + all : e.isAllCaps ? all : all;
			}
			}
			return inner();
		};
		const cellText = (e) => e.children.map((c) => c.type === 'table' ? c.children.map((r) => r.children.map(cellText).join('<br>')).join('<br>') : text(c).replace(/\n/g, '<br>')).filter(Boolean).join('<br>');
		const block = (e) => {
			if (e.type === 'table') {
				const held = []; // by column: rows that a cell above still covers
				for (const row of e.children) {
					const out = [];
					const covered = () => { while (held[out.length] > 0) { held[out.length]--; out.push(''); } };
					for (const c of row.children) {
						covered();
						const at = out.length;
						for (let i = 0; i < c.colSpan; i++) { held[at + i] = c.rowSpan - 1; out.push(i ? '' : cellText(c).replace(/\|/g, '\\|')); }
					}
					covered();
					lines.push('| ' + out.join(' | ') + ' |');
				}
			} else if (e.type === 'paragraph') {
				const heading = /^heading (\d)$/i.exec(e.styleName || ''), n = e.numbering;
				const all = text(e).trim();
				if (all) lines.push(...((heading ? '#'.repeat(heading[1]) + ' ' : n ? '  '.repeat(n.level) + (n.isOrdered ? 'N ' : '- ') : '') + all).split('\n'));
			} else (e.children || []).forEach(block);
			lines.push(...pending); pending = [];
		};
		block(document);
		return document;
	};
	await M.convertToHtml({ buffer }, { transformDocument: read, styleMap: 'comment-reference => sup' });
	return lines;
}

async function byOfficeParser(name, data) {
	const lines = (await parseOfficeAsync(data)).split('\n');
	return name.endsWith('.pptx') ? lines.filter((l) => !/^\d+$/.test(l)) : lines; // without the numbers of slides
}

(async () => {
	const out = [];
	const add = async (name, data, rough) => out.push({ name, data: data.toString('base64'), rough, lines: rough ? await byOfficeParser(name, data) : await byMammoth(data) });
	for (const [name, make] of Object.entries(cases)) await add(name, await make(), !name.endsWith('.docx'));
	for (const { name, data } of JSON.parse(require('fs').readFileSync(0))) {
		for (const rough of [false, true]) await add(name, Buffer.from(data, 'base64'), rough);
	}
	process.stdout.write(JSON.stringify(out));
})();
