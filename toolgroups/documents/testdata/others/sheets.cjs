// Workbooks of four writers, each with what another reader finds in its cells, and what both find in those on the
// standard input.
const E = require('exceljs'), X = require('xlsx'), W = require('write-excel-file/node').default, K = require('odf-kit');

process.env.TZ = 'UTC';
const day = new Date(Date.UTC(2026, 2, 1)), noon = new Date(Date.UTC(2026, 2, 1, 12, 30)), late = new Date(Date.UTC(2026, 11, 31, 23, 59, 59));
const texts = ['plain', ' padded ', 'two\nlines', 'a|b', 'tab\tin', '<b>&</b>', '"quoted"', "'007", '007', '=1+1', '-', '1e5', 'TRUE', '日本語', '😀 é é', 'שלום', 'x'.repeat(3000), '\u00a0nbsp\u00a0', '#REF!', '2026-03-01'];
const odd = ['a\r\nb', '&amp;', '&#65;']; // which exceljs and SheetJS do not read back
const numbers = [0, 1, -1, 0.1 + 0.2, 1 / 3, 1e21, 1.5e300, 1e-10, -2.5e-7, 123456789012345, 9007199254740991, 4.35, 1e5, 100000000000000000000, 0.1, 1234567.891];
const formats = ['0', '0.00', '#,##0', '#,##0.00', '0%', '0.00%', '0.00E+00', '# ?/?', '@', 'm/d/yy', 'd-mmm-yy', 'd-mmm', 'mmm-yy', 'h:mm AM/PM', 'h:mm:ss', 'm/d/yy h:mm', 'mm:ss', '[h]:mm:ss', 'mm:ss.0',
	'#,##0 ;(#,##0)', '#,##0.00;[Red](#,##0.00)', '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)', '"€" #,##0.00', '#,##0.00 "€"', '#,##0.00\\ [$€-407]', '[$$-409]#,##0.00', '[$CHF] #,##0', '[$-407]d. mmmm yyyy', 'yyyy"年"m"月"d"日"', 'dddd, mmmm dd, yyyy',
	'yyyy-mm-dd', 'yyyy-mm-dd hh:mm:ss', 'YYYY-MM-DD', 'dd/mm/yyyy', '0.0"°C"', '0" days"', '0 "d"', '"Day "0', '[>1000]#,##0,"k";0', '0.0,,"M"', '0.00%;[Red]-0.00%', '[<1]0%;0.00', 'General', 'General" kg"', '0.000', '00000', '000-00-0000', 'yyyy', 'mmmm', 'm', 'mm', 'dd', 'ddd', '[mm]:ss', '[ss]', '[ss].00', '[h]:mm:ss.0', 'hh:mm:ss.000', '[$-F800]dddd, mmmm dd, yyyy', '[$-F400]h:mm:ss AM/PM', '0\\ %', '0"%"', '0\\%', '\\#0', '[Blue]0', '[Magenta]0', '[Color10]0.0', '0.00" m/s"', '#,##0.00 "USD"', '"USD" #,##0.00', '£#,##0', '¥#,##0', '0‰', '"Q"0', 'h"h" mm"m"', 'd "days" h "hours"', '[h] "hours"', '"total: "0.0', '0;-0;"zero"', '0.00_ ;[Red]-0.00\\ ',
	'[$-409]h:mm AM/PM;@', '[$-x-sysdate]dddd, mmmm dd, yyyy', '"Due "yyyy-mm-dd', '_-* #,##0.00\\ _€_-', '_-[$€-2]\\ * #,##0.00_-', '[$₹-4009]\\ #,##0.00', '#,##0\\ [$kr-41D]', '[$R$-416] #,##0.00', '0.00\\ "€/kg"', 'd\\.m\\.yyyy', 'd.m.', 'h.mm', 'hh\\hmm', 'mm/yy', '#,##0.00\\ [$zł-415]', '0.00 "% vol"', '[$₿] 0.0000', '[=1]"yes";0.0', '[$-404]e/m/d', 'yyyy"/"q', '[h]', '[m]', 'm"月"', 'yy', 'y', 'd', 'h', 's', 'mmmmm', '[$-41F]d mmmm yyyy h:mm;@', '#,##0.00;-#,##0.00;;@', '[Red][<0]-0.0;[Blue]0.0', '0.0;"<"0.0', '#" "#/#', '0" h"', '0.0"s"', '0" min"', '[White]0', '[CYAN]0.0', '000000', '+0;-0;0', '0.0%;@', '"("0.0%")"'];
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

const col = (values) => values.map((v) => [v]);
const exceljs = (fill, options) => async () => { const b = new E.Workbook(); await fill(b); return Buffer.from(await b.xlsx.writeBuffer(options)); };
const aoa = (rows) => X.utils.aoa_to_sheet(rows);
const sheetjs = (fill, options = {}) => () => { const b = X.utils.book_new(); fill(b); return X.write(b, { type: 'buffer', bookType: 'xlsx', ...options }); };
const put = (b, rows, name = 'S') => X.utils.book_append_sheet(b, Array.isArray(rows) ? aoa(rows) : rows, name);
const formatted = (value) => (b) => { const s = b.addWorksheet('F'); formats.forEach((f, i) => { s.getCell(i + 1, 1).value = value; s.getCell(i + 1, 1).numFmt = f; }); };
const formattedJS = (value) => (b) => { const s = aoa(formats.map(() => [value])); formats.forEach((f, i) => { s['A' + (i + 1)].z = f; }); put(b, s); };

const cases = {
	'exceljs texts.xlsx': exceljs((b) => b.addWorksheet('T').addRows(col([...texts, ...odd]))),
	'exceljs texts inline.xlsx': exceljs((b) => b.addWorksheet('T').addRows(col([...texts, ...odd])), { useSharedStrings: false }),
	'exceljs numbers.xlsx': exceljs((b) => b.addWorksheet('N').addRows([numbers, numbers.map((n) => -n), [true, false]])),
	'exceljs dates.xlsx': exceljs((b) => b.addWorksheet('D').addRows([[day, noon, late], [new Date(Date.UTC(1900, 0, 1)), new Date(Date.UTC(1900, 2, 1)), new Date(Date.UTC(9999, 11, 31))]])),
	'exceljs 1904.xlsx': exceljs((b) => { b.properties.date1904 = true; b.addWorksheet('D').addRows([[day, noon, late], [new Date(Date.UTC(1904, 0, 2))]]); }),
	'exceljs formats of a day.xlsx': exceljs(formatted(46082.75)),
	'exceljs formats of a fraction.xlsx': exceljs(formatted(0.2565)),
	'exceljs formats of a negative.xlsx': exceljs(formatted(-12.5)),
	'exceljs formulas.xlsx': exceljs((b) => {
		const s = b.addWorksheet('F');
		s.addRow([1, 2, { formula: 'A1+B1', result: 3 }, { formula: 'A1&"x"', result: '1x' }, { formula: 'A1>B1', result: false }, { formula: 'A1/0', result: { error: '#DIV/0!' } }, { formula: 'TODAY()', result: day }]);
		s.addRow([3, 4, { formula: 'A2+B2', result: 7 }, { formula: 'A2', result: 0 }, { formula: 'NOW()' }, { error: '#N/A' }]);
		s.fillFormula('H1:H4', 'A1*2', [2, 6, 8, 10]);
		s.getCell('I1').value = { formula: 'SUM(A1:A2*B1:B2)', result: 14, shareType: 'array', ref: 'I1' };
	}),
	'exceljs marks.xlsx': exceljs((b) => {
		const s = b.addWorksheet('M');
		s.getCell('A1').value = { richText: [{ text: 'bold', font: { bold: true } }, { text: ' and ' }, { text: 'not', font: { italic: true } }] };
		s.getCell('B2').value = { text: 'site', hyperlink: 'https://a.example/?x=1&y=2', tooltip: 'tip' };
		s.getCell('C3').value = { text: 'mail', hyperlink: 'mailto:ann@a.example' };
		s.getCell('D4').value = 5; s.getCell('D4').note = 'a note';
		s.getCell('E5').value = 'noted'; s.getCell('E5').note = { texts: [{ text: 'rich ' }, { font: { bold: true }, text: 'note' }] };
		s.getCell('F9').note = 'alone';
	}),
	'exceljs layout.xlsx': exceljs((b) => {
		const s = b.addWorksheet('L');
		s.getCell('A1').value = 'merged'; s.mergeCells('A1:C2'); s.getCell('D7').value = 'far'; s.getCell('AZ9').value = 'farther'; s.getCell('CZ10').value = 'farthest';
		s.getRow(7).hidden = true; s.getColumn(4).hidden = true; s.getCell('A20').value = 'below'; s.getColumn(2).outlineLevel = 1;
		b.addWorksheet('hidden', { state: 'hidden' }).addRow(['h']); b.addWorksheet('very', { state: 'veryHidden' }).addRow(['v']);
		s.autoFilter = 'A1:C1'; s.views = [{ state: 'frozen', ySplit: 1 }];
	}),
	'exceljs table and picture.xlsx': exceljs((b) => {
		const s = b.addWorksheet('T');
		s.addTable({ name: 'Costs', ref: 'B2', headerRow: true, totalsRow: true, columns: [{ name: 'what', totalsRowLabel: 'Sum' }, { name: 'cost', totalsRowFunction: 'sum' }], rows: [['rope', 5], ['crane', 7.5]] });
		s.addImage(b.addImage({ buffer: png, extension: 'png' }), 'E2:F4');
		s.getCell('A9').dataValidation = { type: 'list', formulae: ['"a,b"'] }; s.getCell('A9').value = 'a';
		s.addConditionalFormatting({ ref: 'C3:C4', rules: [{ type: 'cellIs', operator: 'greaterThan', formulae: [6], style: {} }] });
	}),
	'exceljs names.xlsx': exceljs((b) => { for (const n of ["it's", 'a & b', '日本 😀', 'x'.repeat(31), ' lead', '<t>', '2026', 'A1']) b.addWorksheet(n).addRow([n]); }),
	'exceljs stream.xlsx': async () => {
		const out = new (require('stream').PassThrough)(), parts = []; out.on('data', (d) => parts.push(d));
		const b = new E.stream.xlsx.WorkbookWriter({ stream: out, useSharedStrings: true, useStyles: true }), s = b.addWorksheet('S');
		for (let i = 0; i < 500; i++) s.addRow(['row ' + i, i / 7, new Date(Date.UTC(2026, 0, 1) + i * 86400000)]).commit();
		s.commit(); await b.commit(); return Buffer.concat(parts);
	},
	'SheetJS values.xlsx': sheetjs((b) => put(b, [texts, numbers, [true, false, null, 'end']])),
	'SheetJS shared.xlsx': sheetjs((b) => put(b, [texts, texts]), { bookSST: true, compression: true }),
	'SheetJS dates.xlsx': sheetjs((b) => put(b, X.utils.aoa_to_sheet([[day, noon, late]], { cellDates: true })), { cellDates: true }),
	'SheetJS serials.xlsx': sheetjs((b) => put(b, X.utils.aoa_to_sheet([[day, noon, late]]))),
	'SheetJS 1904.xlsx': sheetjs((b) => { b.Workbook = { WBProps: { date1904: true } }; put(b, [[{ t: 'n', v: 44620.5, z: 'yyyy-mm-dd hh:mm' }]]); }),
	'SheetJS formats.xlsx': sheetjs(formattedJS(46082.75)),
	'SheetJS formulas.xlsx': sheetjs((b) => { const s = aoa([[1, 2], [3, 4]]); s.C1 = { t: 'n', f: 'A1+B1', v: 3 }; s.C2 = { t: 's', f: 'A2&"|"&B2', v: '3|4' }; s.D1 = { t: 'n', f: 'SUM(A1:B2*2)', F: 'D1:D1', v: 20 }; s.D2 = { t: 'e', v: 0x07, f: '1/0' }; s.E1 = { t: 'e', v: 0x2a }; s['!ref'] = 'A1:E2'; put(b, s); }),
	'SheetJS marks.xlsx': sheetjs((b) => { const s = aoa([['site', 'inside', 3]]); s.A1.l = { Target: 'https://a.example/a-b?c', Tooltip: 't' }; s.B1.l = { Target: '#T!A1' }; s.C1.c = [{ a: 'Ann', t: 'said' }]; s['!merges'] = [X.utils.decode_range('A3:B4')]; s['!cols'] = [{ hidden: true }]; s['!rows'] = [{}, { hidden: true }]; put(b, s); put(b, [['x']], 'T'); }),
	'SheetJS macro.xlsm': sheetjs((b) => put(b, [['m', 1]]), { bookType: 'xlsm' }),
	'SheetJS calc.ods': sheetjs((b) => { put(b, [texts, numbers, [true, false, null, 'end']]); put(b, X.utils.aoa_to_sheet([[day, noon]]), 'it\'s & "2"'); }, { bookType: 'ods' }),
	'SheetJS table.csv': sheetjs((b) => put(b, [['a,b', 'q"q', 'l\nl', 1.5], ['ü', '', 0, true]]), { bookType: 'csv' }),
	'SheetJS semicolons.csv': sheetjs((b) => put(b, [['a;b', 'q"q', 'l\nl', '1,5'], ['ü', '', '2,5', 'x']]), { bookType: 'csv', FS: ';' }),
	'SheetJS unicode.tsv': sheetjs((b) => put(b, [['a', 'ü'], ['日', 2]]), { bookType: 'txt' }),
	'write-excel-file values.xlsx': async () => W([texts.map((value) => ({ value, type: String })), numbers.map((value) => ({ value, type: Number })), [true, false, null, { value: day, format: 'dd.mm.yyyy' }, { value: '=SUM(A2:B2)', type: 'Formula' }]]).toBuffer(),
	'write-excel-file formats.xlsx': async () => W(formats.map((format) => [{ value: 46082.75, type: Number, format }])).toBuffer(),
	'write-excel-file sheets.xlsx': async () => W([{ data: [[{ value: 'wide', columnSpan: 2, rowSpan: 2 }, null, 'next'], [null, null, 'z']], sheet: 'One & "1"' }, { data: [['b']], sheet: 'Two' }]).toBuffer(),
	'odf-kit calc.ods': async () => { const d = new K.OdsDocument(), s = d.addSheet('Sales & "x"'); s.addRow(texts); s.addRow(numbers); s.addRow([true, false, day, { value: 0.125, type: 'percentage' }, { value: 12.5, type: 'currency', currency: 'EUR' }, { value: '=SUM(A2:B2)', type: 'formula' }]); d.addSheet('Two').addRow(['b']); return Buffer.from(await d.save()); },
};

// bySheetJS and byExcelJS return sheets of cells: the value by its kind, and what stands with it.
const unxml = (text) => text.replace(/&apos;/g, "'").replace(/&quot;/g, '"').replace(/&amp;/g, '&');
function cellOf(c, z, base) {
	const add = (k, v) => { c[k] = v; return c; };
	const { v } = base;
	if (base.t === 'n') {
		if (X.SSF.is_date(z)) add('serial', v);
		else add('number', v);
		try { c.shown = X.SSF.format(z, v); } catch { c.shown = ''; } // some codes it does not know
		c.format = z;
	} else if (base.t === 'b') add('text', v ? 'TRUE' : 'FALSE');
	else add('text', base.w ?? String(v));
	return c;
}
function bySheetJS(data) {
	const b = X.read(data, { cellFormula: true, cellNF: true, cellStyles: true, sheetStubs: true, raw: true });
	const since = b.Workbook?.WBProps?.date1904 ? 1462 : 0;
	return b.SheetNames.map((name, i) => {
		const s = b.Sheets[name], cells = {};
		for (const at in s) {
			if (at[0] === '!' || s[at].t === 'z' && !s[at].c && !s[at].f) continue;
			const c = s[at], cell = cellOf({}, c.z ?? 'General', { t: c.t, v: c.v, w: c.t === 'e' ? c.w : undefined });
			if (c.v === undefined || c.t === 'z') delete cell.text;
			if ('serial' in cell) cell.serial += since;
			if (c.f) cell.formula = c.f;
			if (c.l && !c.l.Target.startsWith('#')) cell.link = unxml(c.l.Target);
			if (c.c) cell.comment = c.c.map((x) => x.t).join('; ');
			cells[at] = cell;
		}
		return { name: unxml(name), hidden: !!b.Workbook?.Sheets?.[i]?.Hidden, cells };
	});
}
async function byExcelJS(data) {
	const b = new E.Workbook(); await b.xlsx.load(data);
	const since = b.properties.date1904 ? 1462 : 0, serial = (d) => d.getTime() / 86400000 + 25569;
	return b.worksheets.map((s) => {
		const cells = {};
		s.eachRow((row) => row.eachCell((c) => {
			if (c.isMerged && c.master !== c) return;
			const cell = {};
			let v = c.value;
			if (v && v.formula !== undefined) { cell.formula = v.formula; v = v.result; }
			if (v && v.sharedFormula) { cell.formula = c.formula; v = v.result; }
			if (v && v.hyperlink !== undefined) { if (!v.hyperlink.startsWith('#')) cell.link = v.hyperlink; v = v.text; }
			if (v && v.richText) v = v.richText.map((r) => r.text).join('');
			if (v && v.error) v = v.error;
			if (v instanceof Date) Object.assign(cell, { serial: serial(v), format: c.numFmt });
			else if (typeof v === 'number') cellOf(cell, c.numFmt || 'General', { t: 'n', v });
			else if (v !== undefined && v !== null) cellOf(cell, '', { t: typeof v === 'boolean' ? 'b' : 's', v });
			if (c.note) cell.comment = typeof c.note === 'string' ? c.note : c.note.texts.map((t) => t.text).join('');
			if ('serial' in cell && !(v instanceof Date)) cell.serial += since;
			cells[c.address] = cell;
		}));
		return { name: s.name, hidden: s.state !== 'visible', cells };
	});
}
(async () => {
	const out = [];
	for (const [name, make] of Object.entries(cases)) {
		const data = await make();
		// ExcelJS reads no ISO dates, no "true", and format codes without their backslashes.
		const other = name.endsWith('x') && !/^exceljs|1904|dates|formats/.test(name) ? await byExcelJS(data) : bySheetJS(data);
		out.push({ name, data: data.toString('base64'), sheets: other });
	}
	for (const { name, data } of JSON.parse(require('fs').readFileSync(0))) {
		const given = Buffer.from(data, 'base64');
		out.push({ name: 'for SheetJS ' + name, data, sheets: bySheetJS(given) }, { name: 'for ExcelJS ' + name, data, sheets: await byExcelJS(given) });
	}
	process.stdout.write(JSON.stringify(out));
})();
