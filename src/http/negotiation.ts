import { type Format, formats } from '../contract/formats.ts'

/** The format that a client prefers; undefined for JSON, which is the default. */
export function toFormat(accept: string | undefined, known: readonly Format[]): Format | undefined {
  if (known.length === 0 || accept === undefined || accept === '*/*') return undefined
  if (accept === 'application/json') return undefined
  const ranges = parseList(accept)
  let best: Format | undefined
  let bestQuality = qualityOf('application/json', ranges)
  for (const format of known) {
    const quality = qualityOf(formats[format].mediaType, ranges)
    if (quality <= bestQuality) continue
    best = format
    bestQuality = quality
  }
  return best
}

/** Whether a client accepts a gzipped answer. */
export function takesGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false
  const codings = parseList(acceptEncoding)
  return (codings.get('gzip') ?? codings.get('x-gzip') ?? codings.get('*') ?? 0) > 0
}

/** The quality of a media type: that of the range that names it most closely. */
function qualityOf(mediaType: string, ranges: ReadonlyMap<string, number>): number {
  const [type] = mediaType.split('/')
  return ranges.get(mediaType) ?? ranges.get(`${type}/*`) ?? ranges.get('*/*') ?? 0
}

/** The elements of a header with their qualities, 1 by default. Other parameters are ignored. */
function parseList(text: string): Map<string, number> {
  return new Map(
    text.split(',').map((element) => {
      const [name = '', ...parameters] = element.split(';').map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))
      return [name, quality === undefined ? 1 : Number(quality.slice(2)) || 0]
    }),
  )
}
