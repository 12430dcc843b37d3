import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { formatNames, formats } from '../../../src/contract/formats.ts'
import { limits } from '../../../src/contract/limits.ts'
import { foreign, plants, readable, toPath } from '../../spreadsheet/files.ts'
import { authorized } from '../../support/service.ts'
import { answered, get, refused, type Scenario, upload } from './scenario.ts'

const gzip = { 'Content-Encoding': 'gzip' }
const nothing = '"replaced":0,"skipped":0,"conflicts":0,"invalid":0,"refused":[],"refusedInAll":0'
const wrongTypes = ['application/json', 'application/x-www-form-urlencoded']
const longName = 'x'.repeat(8_256)

/** A head, and two plants in the longest lines. */
const ndjsonLines = [
  '',
  `{"id":85,"name":"${longName.slice(19)}"}`,
  `{"id":86,"name":"${longName.slice(19)}"}`,
]
const csvLines = ['id,name\n', `87,${longName.slice(3)}`, `88,${longName.slice(3)}`]

const doubleRule = '?on-conflict=fail&on-conflict=fail'

const csv = (body: string, query: string) => upload('csv', body, {}, `?${query}`)

const taken: Scenario[] = [
  answered('an import', upload('ndjson', '{"id":80,"name":"a"}\n{"id":81,"name":"b","tag":""}'), {
    body: `{"lines":2,"stored":2,"alreadyThere":0,${nothing}}`,
  }),
  answered('the same import', upload('csv', 'tag,id,name\r\n,80,a\r\n"",81,b\r\n'), {
    body: `{"lines":2,"stored":0,"alreadyThere":2,${nothing},"header":"tag,id,name"}`,
  }),
  answered(
    'a gzipped import with a byte order mark',
    upload('csv', gzipSync('\ufeffid,name\n80,a\n'), { 'Content-Encoding': 'GZip' }),
    { body: `{"lines":1,"stored":0,"alreadyThere":1,${nothing},"header":"id,name"}` },
  ),
  answered(
    'an import with a charset',
    upload('csv', 'id,name\n80,a\n', {
      'Content-Type': 'Text/CSV; header=present; charset="UTF-8"',
      'Content-Encoding': 'identity',
    }),
  ),
  answered('an import of a header row', upload('csv', 'id,name\n'), {
    body: `{"lines":0,"stored":0,"alreadyThere":0,${nothing},"header":"id,name"}`,
  }),
  answered('an import with lines that hold no plant', upload('ndjson', 'x\n{"id":82}\n[]\n'), {
    body: /^{"lines":3,"stored":0,.*"invalid":3,"refused":\[{"line":1,"error":40001,"message":".*{"line":2,"id":82,"error":40003,.*{"line":3,"error":40003,.*"refusedInAll":3}$/,
  }),
  answered(
    'an import that ends after as many refused lines as it takes',
    upload('ndjson', 'x\n'.repeat(limits.refusedLines + 5)),
    {
      body: new RegExp(
        `"refusedInAll":${limits.refusedLines},"endedAtLine":${limits.refusedLines}}$`,
      ),
    },
  ),
  answered('an import with a conflict', upload('ndjson', '{"id":80,"name":"other"}'), {
    body: /"conflicts":1,"invalid":0,"refused":\[{"line":1,"id":80,"error":40900,"message":"[^"]*","text":"{.*}"}\],"refusedInAll":1}$/,
  }),
  answered(
    'an import that skips conflicts',
    upload('ndjson', '{"id":80,"name":"other"}', {}, '?on-conflict=skip'),
    { body: /"skipped":1,"conflicts":0,"invalid":0,"refused":\[\],"refusedInAll":0}$/ },
  ),
  answered('an import that replaces', csv('id,name\n80,other\n', 'on-conflict=replace'), {
    body: /"alreadyThere":0,"replaced":1,/,
  }),
]

const everyFormat: Scenario[] = formatNames.flatMap((format) => {
  const plant = format === 'csv' ? '83,a\n' : '{"id":83,"name":"a"}\n'
  const long = format === 'csv' ? `84,${longName}\n` : `{"id":84,"name":"${longName}"}\n`
  const [head, first, second] = format === 'csv' ? csvLines : ndjsonLines
  const { mediaType: type } = formats[format]
  const { mediaType: otherType } = formats[format === 'csv' ? 'ndjson' : 'csv']
  const longest = `${head}${first}\r\n${second}`
  const start = `${head}${plant}`
  const beside = `${head}${long}${plant}`
  return [
    ...['', ' \r\n\t\n', '\ufeff', '\ufeff\r\n'].map((body) =>
      refused(40002, `${format} that is blank: ${JSON.stringify(body)}`, upload(format, body)),
    ),
    ...[Buffer.of(), gzipSync('\n')].map((body) =>
      refused(40002, `${format} that is ${body.length} bytes of gzip`, upload(format, body, gzip)),
    ),
    answered(
      `${format} with a line that is just short enough, and one without a newline`,
      upload(format, longest),
      { body: /^{"lines":2,"stored":2,/ },
    ),
    refused(40002, `no body and no media type for ${format}`, {
      ...upload(format, ''),
      headers: authorized,
    }),
    refused(40005, `${format} with an unknown rule`, upload(format, start, {}, '?on-conflict=x')),
    refused(40005, `${format} with two rules`, upload(format, start, {}, doubleRule)),
    answered(`${format} with a line that is too long`, upload(format, beside), {
      body: /^{"lines":2,.*"invalid":1,"refused":\[{"line":\d,"error":41300,"message":"The line is longer than 8256 bytes\.","text":".{900,1100}"}\]/,
    }),
    ...[...wrongTypes, otherType, `${type};charset=latin1`].map((value) =>
      refused(41500, `${format} as ${value}`, upload(format, start, { 'Content-Type': value })),
    ),
    ...['br', 'gzip, gzip'].map((value) =>
      refused(41500, `${format} in ${value}`, upload(format, start, { 'Content-Encoding': value })),
    ),
    refused(41500, `${format} without a media type`, {
      ...upload(format, start),
      headers: authorized,
    }),
    refused(
      40000,
      `half a gzipped ${format}`,
      upload(format, gzipSync(start).subarray(0, 30), gzip),
    ),
    refused(
      41300,
      `${format} that expands to far more than its size`,
      upload(format, gzipSync(start + ' '.repeat(3_000_000)), gzip),
    ),
    refused(40000, `${format} that is not gzip`, upload(format, start, gzip)),
  ]
})

const headers: Scenario[] = ['1,a\n', '"id\n'].map((body) =>
  refused(40003, `CSV without a usable header: ${JSON.stringify(body)}`, upload('csv', body), {
    body: /Line 1: .* Nothing was imported\./,
  }),
)

/** Delimiters that are said. */
const delimiters: Scenario[] = [
  answered('CSV with its delimiter', csv('id;name\n80;other\n', 'delimiter=semicolon'), {
    body: /"alreadyThere":1,/,
  }),
  refused(40003, 'CSV with another delimiter', csv('id;name\n', 'delimiter=comma'), {
    body: /Line 1: The first line must name the columns .* It is: \\"id;name\\"\. Nothing was/,
  }),
  ...['delimiter=%3B', 'delimiter=', 'delimiter=Tab', 'delimiter=tab&delimiter=tab'].map((query) =>
    refused(40005, `CSV with ${query}`, csv('id,name\n', query), {
      body: /delimiter (must be comma, semicolon or tab|is given twice: send it once)/,
    }),
  ),
]

const ndjsonTrials: Scenario[] = [
  answered('a dry run', upload('ndjson', '{"id":899,"name":"a"}', {}, '?dry-run=true'), {
    body: /"stored":1,/,
  }),
  answered(
    'an import that is said to be no dry run, with a conflict',
    csv('id,name\n80,mine\n', 'on-conflict=replace&dry-run=false'),
    { body: /"replaced":1,/ },
  ),
]

/** What a report says about the columns of a file, and a refusal about a file that has none. */
const columns: Scenario[] = [
  answered('columns in any case', upload('csv', 'ID;Name ; TAG\n80;mine;\n'), {
    body: /"alreadyThere":1,.*"header":"ID;Name ; TAG"}$/,
  }),
  answered('columns that are not stored', upload('csv', 'id,name,,Price,Price\n80,mine,,1,2\n'), {
    body: /"header":"id,name,,Price,Price","ignoredColumns":\["Price","Price"\]}$/,
  }),
  refused(40003, 'a dry run', csv('Nr\n', 'dry-run=true'), {
    body: /This was a dry run: nothing was stored\."}$/,
  }),
  refused(40005, 'a dry run of another kind', csv('id,name\n', 'dry-run=yes')),
]

/** Files that spreadsheets write. They hold the same plants, in a store of their own. */
const spreadsheets: Scenario[] = [
  ...readable.map((name, index) =>
    answered(`the file ${name}`, upload('csv', readFileSync(toPath(name))), {
      env: {},
      body: index === 0 ? /"stored":4,"alreadyThere":0,/ : /"stored":0,"alreadyThere":4,/,
    }),
  ),
  refused(40003, `the file ${foreign}`, upload('csv', readFileSync(toPath(foreign))), {
    env: {},
    body: /UTF-8\. Save the file as \\"CSV UTF-8 .* in Excel, .*LibreOffice\. Nothing/,
  }),
  answered('a list of their plants', get('/plants'), { env: {}, body: `[${plants.join(',')}]` }),
]

/** Files of plants as bodies. */
export const imports: Scenario[] = [
  ...taken,
  ...everyFormat,
  ...headers,
  ...delimiters,
  ...ndjsonTrials,
  ...columns,
  ...spreadsheets,
]
