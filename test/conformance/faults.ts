import type { Fault } from './faulty-proxy.ts'

/** A fault, and the promise that names it. */
interface PlantedFault extends Fault {
  readonly name: string
  readonly breaks: string
}

const isGet = (request: string) => request.startsWith('GET ')
const isCreate = (request: string) => request.startsWith('POST /plants ')
const isList = (request: string) => request.startsWith('GET /plants?')
const isPlant = (request: string) => /^GET \/plants\/-?\d/.test(request)
const isOk = (text: string) => text.startsWith('HTTP/1.1 200')
const drop = (name: string) => (text: string) =>
  text.replace(new RegExp(`^${name}:.*\r\n`, 'im'), '')
const rounded = (text: string) =>
  text.replaceAll(/"id":(-?\d{16,})/g, (_, id: string) => `"id":${BigInt(Number(id))}`)

type Change = NonNullable<Fault['answer']>

/** Answers of a create, changed. */
function inCreate(change: Change): Change {
  return (text, request) => (isCreate(request) && isOk(text) ? change(text, request) : text)
}

const reverse = (_: string, plants: string) => `[${plants.split(/(?<=\}),/).reverse()}]`

const idOf = (request: string) => /"id": ?(-?\d+)/.exec(request)?.[1] ?? '0'

export const plantedFaults: readonly PlantedFault[] = [
  {
    name: 'a create is answered with 201',
    breaks: 'S1',
    answer: inCreate((text) => text.replace('200 OK', '201 Created')),
  },
  {
    name: 'a create is answered with the id',
    breaks: 'S4',
    answer: inCreate((text, request) =>
      text.replace('\r\n\r\n{', `\r\n\r\n{"id":${idOf(request)},`),
    ),
  },
  {
    name: 'a missing tag is answered as null',
    breaks: 'S5',
    answer: inCreate((text) =>
      text.includes('"tag"') ? text : text.replace(/\}$/, ',"tag":null}'),
    ),
  },
  {
    name: 'the error of a 400 is a text',
    breaks: 'S10',
    answer: (text) => text.replace(/"error":(\d+)/, '"error":"$1"'),
  },
  {
    name: 'requests without a token count as those of the operator',
    breaks: 'S11',
    request: (text) =>
      /^authorization:/im.test(text)
        ? text
        : text.replace('\r\n', `\r\nAuthorization: Bearer operator-token-of-the-tests\r\n`),
  },
  {
    name: 'ids are rounded to doubles',
    breaks: 'C2',
    answer: (text, request) => (isGet(request) ? rounded(text) : text),
  },
  {
    name: 'a member is added to each plant',
    breaks: 'C35',
    answer: (text, request) =>
      isPlant(request) && isOk(text) ? text.replace(/\}$/, ',"x":1}') : text,
  },
  {
    name: 'a tag that is null is stored as none',
    breaks: 'C12',
    request: (text) => text.replace(',"tag":null', ''),
  },
  {
    name: 'white space around a name is trimmed',
    breaks: 'C8',
    request: (text) => text.replace('"name":" ', '"name":"'),
  },
  { name: 'a create has no Location', breaks: 'C23', answer: inCreate(drop('Location')) },
  {
    name: 'a taken id gets the wrong number',
    breaks: 'C26',
    answer: (text) => text.replace('"error":40900', '"error":40901'),
  },
  {
    name: 'an Idempotency-Key is ignored',
    breaks: 'C29',
    request: drop('Idempotency-Key'),
  },
  {
    name: 'an ETag depends on the id alone',
    breaks: 'C53',
    answer: inCreate((text, request) => text.replace(/^etag:.*$/im, `ETag: "${idOf(request)}"`)),
  },
  {
    name: 'a weak tag matches in If-Match',
    breaks: 'C44',
    request: (text) => text.replace('If-Match: W/', 'If-Match: '),
  },
  {
    name: 'a put that creates is answered with 200',
    breaks: 'C40',
    answer: (text) => text.replace('HTTP/1.1 201 Created', 'HTTP/1.1 200 OK'),
  },
  {
    name: 'a list is in another order',
    breaks: 'C54',
    answer: (text, request) => (isList(request) ? text.replace(/\[(\{.*\})\]/, reverse) : text),
  },
  {
    name: 'limit is ignored',
    breaks: 'C56',
    request: (text) => (isList(text) ? text.replace(/&limit=2 /, ' ') : text),
  },
  {
    name: 'a list has no Link',
    breaks: 'C56',
    answer: (text, request) => (isList(request) ? drop('Link')(text) : text),
  },
  {
    name: 'a refusal has no WWW-Authenticate',
    breaks: 'C70',
    answer: drop('WWW-Authenticate'),
  },
  {
    name: 'the scheme is compared as it is written',
    breaks: 'C73',
    request: (text) => text.replace('bEARER', 'Basic'),
  },
  {
    name: 'an Error has a third member',
    breaks: 'C37',
    answer: (text) => text.replace(/("error":\d+)/, '$1,"status":1'),
  },
  {
    name: 'a 405 has no Allow',
    breaks: 'C78',
    answer: (text) => (text.startsWith('HTTP/1.1 405') ? drop('Allow')(text) : text),
  },
  {
    name: 'HEAD has another status',
    breaks: 'C102',
    answer: (text, request) =>
      request.startsWith('HEAD ')
        ? text.replace('HTTP/1.1 404 Not Found', 'HTTP/1.1 200 OK')
        : text,
  },
  {
    name: 'a preflight does not allow If-Match',
    breaks: 'C85',
    answer: (text) => text.replace(/^(access-control-allow-headers:.*?), If-Match/im, '$1'),
  },
  {
    name: 'an export is cut',
    breaks: 'C114',
    answer: (text, request) =>
      request.startsWith('GET /plants.ndjson') ? text.replace(/0\r\n\r\n$/, '') : text,
  },
]
