import { limits } from '../contract/limits.ts'

/**
 * The media type that a client prefers. The first one is the default and wins a tie, unless
 * `Accept` names the other type and covers the default only by a wildcard.
 */
export function toPreferred(accept: string | undefined, mediaTypes: readonly string[]): string {
  const [usual = ''] = mediaTypes
  if (accept === undefined || accept === '*/*' || accept === usual) return usual
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
      const [name = '', ...parameters] = element
        .split(';', 1 + limits.mediaTypeParameters)
        .map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))
      return [name, quality === undefined ? 1 : Number(quality.slice(2)) || 0]
    }),
  )
}
