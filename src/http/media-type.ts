import { Failure } from '../contract/errors.ts'

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

/** The failure of a body that is not, or does not say to be, of this media type. */
export function otherMediaType(mediaType: string): Failure {
  return new Failure(41500, `The header Content-Type must be "${mediaType}", in UTF-8.`)
}
