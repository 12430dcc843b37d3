import { Failure } from '../contract/errors.ts'

/**
 * The media type that a client prefers. The first one is the default and wins a tie, unless
 * `Accept` names the other type and covers the default only by a wildcard.
 */
export function toPreferred(accept: string | undefined, mediaTypes: readonly string[]): string {
  const usual = mediaTypes[0] ?? ''
  const hasChoice = mediaTypes.length > 1 && accept !== undefined
  if (!hasChoice || accept === '*/*' || accept === usual) return usual
  const ranges = parseList(accept)
  let best = usual
  let bestQuality = qualityOf(usual, ranges)
  for (const mediaType of mediaTypes) {
    const quality = qualityOf(mediaType, ranges)
    const isNamed = quality === bestQuality && ranges.has(mediaType) && !ranges.has(best)
    if (quality === 0 || (quality <= bestQuality && !isNamed)) continue
    best = mediaType
    bestQuality = quality
  }
  return best
}

/** Whether a client accepts gzip, and does not prefer the plain answer. */
export function takesGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false
  const codings = parseList(acceptEncoding)
  const quality = codings.get('gzip') ?? codings.get('x-gzip') ?? codings.get('*') ?? 0
  return quality > 0 && quality >= (codings.get('identity') ?? 0)
}

/** The quality of a media type, from the most specific range that covers it. */
function qualityOf(mediaType: string, ranges: ReadonlyMap<string, number>): number {
  const [type] = mediaType.split('/')
  return ranges.get(mediaType) ?? ranges.get(`${type}/*`) ?? ranges.get('*/*') ?? 0
}

/** How many elements of a header are read. The others are ignored. */
const maxElements = 32

/** The elements of a header with their qualities, 1 by default. Other parameters are ignored. */
function parseList(text: string): Map<string, number> {
  return new Map(
    text.split(',', maxElements).map((element) => {
      const [name = '', ...parameters] = element.split(';').map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))
      return [name, quality === undefined ? 1 : Number(quality.slice(2)) || 0]
    }),
  )
}

const token = "[\\w!#$%&'*+.^`|~-]+"
/** A semicolon and the parameter after it, if there is one. */
const parameterPattern = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${token})=(?:(${token})|"((?:[^"\\\\]|\\\\.)*)"))?`,
  'y',
)

/** Whether a `Content-Type` is this media type in UTF-8. Other parameters are ignored. */
export function isMediaType(contentType: string, mediaType: string): boolean {
  if (contentType === mediaType) return true
  const start = contentType.search(/[^ \t]/)
  let end = start + mediaType.length
  if (contentType.slice(start, end).toLowerCase() !== mediaType) return false
  const charsets: string[] = []
  parameterPattern.lastIndex = end
  for (
    let match = parameterPattern.exec(contentType);
    match;
    match = parameterPattern.exec(contentType)
  ) {
    const [, name = '', plain, quoted = ''] = match
    if (name.toLowerCase() === 'charset') charsets.push((plain ?? quoted).toLowerCase())
    end = parameterPattern.lastIndex
  }
  const isWhole = /^[ \t]*$/.test(contentType.slice(end))
  return isWhole && charsets.length <= 1 && charsets.every((charset) => charset === 'utf-8')
}

/** The failure of a body that is not declared to have this media type. */
export function otherMediaType(mediaType: string): Failure {
  return new Failure(41500, `The header Content-Type must be "${mediaType}", in UTF-8.`)
}
