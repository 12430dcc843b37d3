import { createHash } from 'node:crypto'

type Json = Record<string, unknown>

const style = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 20%, transparent); }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code { font: 0.9em ui-monospace, monospace; }
h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1.5rem; }
.method { color: #1a7f37; font-weight: 700; margin-right: 0.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.8rem 0.4rem 0; border-bottom: 1px solid var(--line); }
p, li { white-space: pre-line; }
`

/** What every path answers in the same way; said once in the introduction of the page. */
const understood = ['head', 'options']

/** Lets the page use its own style and nothing else. */
export const docsPolicy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; frame-ancestors 'none'; base-uri 'none'`

/** The OpenAPI document as a page to read: complete in itself, without a script. */
export function buildDocsPage(document: Json): string {
  const { info, paths, components } = document as {
    info: { title: string; version: string; description: string }
    paths: Record<string, Record<string, DocumentedOperation>>
    components: {
      schemas: Record<string, DocumentedShape>
      responses: Record<string, DocumentedResponse>
    }
  }
  const findResponse = (response: DocumentedResponse | Reference): DocumentedResponse =>
    '$ref' in response
      ? (components.responses[response.$ref.replace(/^.*\//, '')] as DocumentedResponse)
      : response
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => !understood.includes(method))
      .map(([method, operation]) => renderOperation(method, path, operation, findResponse)),
  )
  const shapes = Object.entries(components.schemas).map(([name, shape]) => renderShape(name, shape))
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(info.title)} ${escapeHtml(info.version)}</title>
<style>${style}</style>
<h1>${escapeHtml(info.title)} ${escapeHtml(info.version)}</h1>
<p>${toHtml(info.description)}</p>
<p>HEAD is answered wherever GET is; OPTIONS answers 204 with <code>Allow</code>.</p>
<p>For programs: <a href="openapi.json">openapi.json</a></p>
${operations.join('')}${shapes.join('')}</html>
`
}

interface DocumentedOperation {
  readonly summary: string
  readonly description: string
  readonly responses: Record<string, DocumentedResponse | Reference>
}

interface DocumentedResponse {
  readonly description: string
}

interface Reference {
  readonly $ref: string
}

interface DocumentedShape {
  readonly description: string
  readonly required?: string[]
  readonly properties?: Record<string, { type: string; format?: string; description?: string }>
}

function renderOperation(
  method: string,
  path: string,
  operation: DocumentedOperation,
  findResponse: (response: DocumentedResponse | Reference) => DocumentedResponse,
): string {
  const rows = Object.entries(operation.responses).map(([status, response]) => [
    `<code>${status}</code>`,
    toHtml(findResponse(response).description),
  ])
  return `<h2><span class="method">${method.toUpperCase()}</span><code>${escapeHtml(path)}</code></h2>
<p>${escapeHtml(operation.summary)}. ${toHtml(operation.description)}</p>
${renderTable(['Status', 'Meaning'], rows)}`
}

function renderShape(name: string, shape: DocumentedShape): string {
  const rows = Object.entries(shape.properties ?? {}).map(
    ([member, { type, format, description }]) => [
      `<code>${escapeHtml(member)}</code>`,
      escapeHtml(format ?? type),
      shape.required?.includes(member) ? 'yes' : 'no',
      toHtml(description ?? ''),
    ],
  )
  const table = rows.length > 0 ? renderTable(['Member', 'Type', 'Required', 'Meaning'], rows) : ''
  return `<h2>${escapeHtml(name)}</h2>
<p>${toHtml(shape.description)}</p>
${table}`
}

function renderTable(titles: string[], rows: string[][]): string {
  const head = titles.map((title) => `<th>${title}</th>`).join('')
  const lines = rows.map(
    (cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>\n`,
  )
  return `<table><tr>${head}</tr>\n${lines.join('')}</table>\n`
}

// The descriptions are ours and use one mark only: backticks around code.
function toHtml(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
