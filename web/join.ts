const comment = /^[ \t]*(?:\/\*\*[\s\S]*?\*\/|\/\/.*)[ \t]*(?:\n|$)/gm
const importStatement = /^import\s*\{([^}]*)\}\s*from\s*'(\.[^']+)';?$/gm
const exportedDeclaration = /^export (?=(?:async )?(?:function\*?|const|class) ([\w$]+))/gm

/**
 * Joins a module and all that it imports into one script, so that a browser needs one request for
 * it. Each module becomes a function that returns its exports. The style of the source makes this
 * simple: named imports of our own files, without circles, and exported declarations. All else is
 * refused. `read` returns a module as JavaScript.
 */
export function joinModules(entry: URL, read: (url: URL) => string): string {
  const names = new Map<string, string>()
  const parts: string[] = []

  function add(url: URL): string {
    const known = names.get(url.href)
    if (known !== undefined) return known
    const exported: string[] = []
    const text = read(url)
      .replaceAll(comment, '')
      .replaceAll(importStatement, (_, list: string, from: string) => {
        return `const {${list.replaceAll(' as ', ': ')}} = ${add(new URL(from, url))}`
      })
      .replaceAll(exportedDeclaration, (_, name: string) => {
        exported.push(name)
        return ''
      })
    const left = /^(?:import|export)\b.*|\bimport\(.*/m.exec(text)
    if (left !== null) throw new Error(`${url.pathname} cannot be joined: ${left[0]}`)
    const name = `m${names.size}`
    names.set(url.href, name)
    parts.push(`const ${name} = (() => {\n${text}\nreturn { ${exported.join(', ')} }\n})()\n`)
    return name
  }

  add(entry)
  return parts.join('')
}
