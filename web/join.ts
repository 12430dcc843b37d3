/** Reads a module of the browser as JavaScript, by its URL. */
export type ReadModule = (url: URL) => string

/**
 * Joins a module and all that it imports into one script, so that a browser needs one request for
 * it. Each module becomes a function that returns its exports. The style of the source makes this
 * simple: named imports and exports of our own files, without circles. All else is refused.
 */
export function joinModules(entry: URL, read: ReadModule): string {
  const names = new Map<string, string>()
  const parts: string[] = []

  function add(url: URL): string {
    const known = names.get(url.href)
    if (known !== undefined) return known
    const { text, exported } = rewrite(read(url), url, (source) => add(new URL(source, url)))
    const name = `m${names.size}`
    names.set(url.href, name)
    parts.push(`const ${name} = (() => {\n${text}\nreturn { ${exported.join(', ')} }\n})()\n`)
    return name
  }

  add(entry)
  return parts.join('')
}

interface Rewritten {
  readonly text: string
  readonly exported: readonly string[]
}

const importStatement = /^import\s*\{([^}]*)\}\s*from\s*'(\.[^']+)';?$/gm
const exportedNames = /^export\s*\{([^}]*)\}(?:\s*from\s*'(\.[^']+)')?;?$/gm
const exportedDeclaration = /^export (?=(?:async )?(?:function\*?|const|class) ([\w$]+))/gm
const comment = /^[ \t]*(?:\/\*\*[\s\S]*?\*\/|\/\/.*)[ \t]*(?:\n|$)/gm

function rewrite(source: string, url: URL, resolve: (source: string) => string): Rewritten {
  const exported: string[] = []
  const text = source
    .replaceAll(comment, '')
    .replaceAll(importStatement, (_, list: string, from: string) => {
      const module = resolve(from)
      return `const { ${toNames(list).map(toBinding).join(', ')} } = ${module}`
    })
    .replaceAll(exportedNames, (_, list: string, from: string | undefined) => {
      const module = from === undefined ? '' : `${resolve(from)}.`
      for (const [name, alias] of toNames(list)) exported.push(`${alias}: ${module}${name}`)
      return ''
    })
    .replaceAll(exportedDeclaration, (_, name: string) => {
      exported.push(name)
      return ''
    })
  const left = /^(?:import|export)\b.*|\bimport\(.*/m.exec(text)
  if (left !== null) throw new Error(`${url.pathname} cannot be joined: ${left[0]}`)
  return { text, exported }
}

function toNames(list: string): [name: string, alias: string][] {
  const names = list.split(',').map((name) => name.trim())
  return names
    .filter((name) => name !== '')
    .map((text) => {
      const [name = '', alias = name] = text.split(/\s+as\s+/)
      return [name, alias]
    })
}

function toBinding([name, alias]: [name: string, alias: string]): string {
  return name === alias ? name : `${name}: ${alias}`
}
