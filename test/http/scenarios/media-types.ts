import { answered, get, put, refused, rose, type Scenario } from './scenario.ts'

const path = '/plants/90'

/** A replace whose body has each of these media types. A bar divides them. */
function withTypes(types: string, toScenario: (type: string) => Scenario): Scenario[] {
  return types.split(' | ').map(toScenario)
}

function accepted(why: string, types: string): Scenario[] {
  return withTypes(types, (type) =>
    answered(
      `the media type ${JSON.stringify(type)}: ${why}`,
      put(path, rose, { 'Content-Type': type }),
      // The first one creates the plant.
      { status: type === 'application/json' ? 201 : 200 },
    ),
  )
}

function wrong(error: 40000 | 41500, why: string, types: string): Scenario[] {
  return withTypes(types, (type) =>
    refused(
      error,
      `the media type ${JSON.stringify(type.slice(0, 60))}: ${why}`,
      put(path, '{"name":"Refused"}', { 'Content-Type': type }),
    ),
  )
}

/** The media type of a body, by RFC 9110, sections 5.5, 5.6 and 8.3. */
export const mediaTypes: Scenario[] = [
  ...accepted(
    'JSON, whatever its case and the white space around it',
    'application/json | APPLICATION/JSON | Application/Json |   application/json   | ' +
      '\tapplication/json\t',
  ),
  ...accepted(
    'JSON in UTF-8, the value plain or quoted',
    'application/json;charset=utf-8 | application/json; charset=utf-8 | ' +
      'application/json ;charset=utf-8 | application/json\t;\tcharset=utf-8 | ' +
      'application/json;charset=UTF-8 | application/json;CHARSET=Utf-8 | ' +
      'application/json;charset="utf-8" | application/json;charset="UTF-8" ',
  ),
  ...accepted(
    'JSON with parameters that change nothing',
    'application/json; | application/json;; | application/json; ; charset=utf-8 ; | ' +
      'application/json;version=1 | application/json;version=1;charset=utf-8 | ' +
      'application/json;profile="a;b,c" | application/json;profile="\\"";charset=utf-8 | ' +
      'application/json;profile="" | ' +
      `application/json${';'.repeat(31)}charset=utf-8 | ` +
      `application/json${';a=b'.repeat(31)};charset=utf-8 | ` +
      "application/json;!#$%&'*+-.^_`|~=x",
  ),
  ...wrong(
    41500,
    'another charset, or two',
    'application/json;charset=utf-16 | application/json;charset=iso-8859-1 | ' +
      'application/json;charset=us-ascii | application/json;charset=utf8 | ' +
      'application/json;charset="" | application/json;charset="utf-16" | ' +
      'application/json;charset=utf-8;charset=utf-16 | ' +
      'application/json;charset=utf-8;charset=utf-8',
  ),
  ...wrong(
    41500,
    'more than 32 parameters',
    `application/json${';'.repeat(32)};charset=utf-8 | application/json${';a=b'.repeat(33)} | ` +
      `application/json${';'.repeat(14_000)}`,
  ),
  ...wrong(
    41500,
    'none by the grammar',
    ' | ; | / | application | application/ | /json | json | application /json | ' +
      'application/ json | application/json charset=utf-8 | application/json,charset=utf-8 | ' +
      'application/json;charset | application/json;charset= | application/json;charset =utf-8 | ' +
      'application/json;charset= utf-8 | application/json;=utf-8 | ' +
      "application/json;charset=\"utf-8 | application/json;charset='utf-8' | " +
      'application/json;a b=c | application/json, application/json | "application/json" | ' +
      'application\\json | application/json\u00a0 | application/json\u00e9',
  ),
  ...wrong(
    41500,
    'another media type, or a range of them',
    'text/json | text/plain | application/* | */* | * | application/vnd.api+json | ' +
      'application/json+x | application/jsonp | application/json5 | application/x-json | ' +
      'application/problem+json | application/x-ndjson | application/json-seq | ' +
      'application/octet-stream | application/x-www-form-urlencoded | ' +
      'multipart/form-data; boundary=x | text/html; application/json',
  ),
  ...wrong(
    40000,
    'not allowed in a header field',
    'application/json\u0000 | application/json\u0001 | application/json\u007f',
  ),
  ...['application/json', 'text/plain', ''].map((second) =>
    refused(
      40000,
      `two media types, the second one "${second}"`,
      put(path, rose, { 'Content-Type': ['application/json', second] }),
    ),
  ),
  answered('a get of the plant that none of these replaced', get(path), {
    body: '{"id":90,"name":"Rose","tag":"garden"}',
  }),
]
