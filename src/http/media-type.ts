const token = "[\\w!#$%&'*+.^`|~-]+"
const typePattern = /[ \t]*application\/json/iy
/** A semicolon and the parameter after it, if there is one. */
const parameterPattern = new RegExp(
  `[ \\t]*;[ \\t]*(?:(${token})=(?:(${token})|"((?:[^"\\\\]|\\\\.)*)"))?`,
  'y',
)

/** Whether a media type is JSON in UTF-8. Parameters other than `charset` are ignored. */
export function isJson(mediaType: string): boolean {
  if (mediaType === 'application/json') return true
  typePattern.lastIndex = 0
  if (!typePattern.test(mediaType)) return false
  const charsets: string[] = []
  parameterPattern.lastIndex = typePattern.lastIndex
  let end = typePattern.lastIndex
  for (
    let match = parameterPattern.exec(mediaType);
    match;
    match = parameterPattern.exec(mediaType)
  ) {
    const [, name = '', plain, quoted = ''] = match
    if (name.toLowerCase() === 'charset') charsets.push((plain ?? quoted).toLowerCase())
    end = parameterPattern.lastIndex
  }
  const isWhole = /^[ \t]*$/.test(mediaType.slice(end))
  return isWhole && charsets.length <= 1 && charsets.every((charset) => charset === 'utf-8')
}
