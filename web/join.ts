/** Reads a module of the browser as JavaScript, by its URL. */
export type ReadModule = (url: URL) => string

/**
 * Joins a module and all that it imports into one script, so that a browser needs one request for
 * it. Each module becomes a function that returns its exports. The style of the source makes this
 * simple: named imports of our own files, without circles, and exported declarations. All else is
 * refused.
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
const exportedDeclaration = /^export (?=(?:async )?(?:function\*?|const|class) ([\w$]+))/gm
const comment = /^[ \t]*(?:\/\*\*[\s\S]*?\*\/|\/\/.*)[ \t]*(?:\n|$)/gm

function rewrite(source: string, url: URL, resolve: (source: string) => string): Rewritten {
  const exported: string[] = []
  const text = source
    .replaceAll(comment, '')
    .replaceAll(importStatement, (_, list: string, from: string) => {
      return `const {${list.replaceAll(' as ', ': ')}} = ${resolve(from)}`
    })
    .replaceAll(exportedDeclaration, (_, name: string) => {
      exported.push(name)
      return ''
    })
  const left = /^(?:import|export)\b.*|\bimport\(.*/m.exec(text)
  if (left !== null) throw new Error(`${url.pathname} cannot be joined: ${left[0]}`)
  return { text, exported }
}
