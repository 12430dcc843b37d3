import { type Config, defaultDatabaseUrl } from '../config.ts'
import { isLoopback } from '../contract/loopback.ts'
import { inMemory } from './flags.ts'
import type { Terminal } from './terminal.ts'

/** A service that has just started. */
export interface Started {
  /** An address of this machine, to paste. */
  readonly url: string
  readonly firstToken: string | undefined
  /** Whether this start has made the store. */
  readonly isNewStore?: boolean
}

/**
 * Whether a secret may be printed: a journal keeps it for many readers. On a desktop, programs
 * inherit JOURNAL_STREAM though they print to a terminal.
 */
export function mayPrintToken(
  { isUnderSystemd }: Config,
  { output }: { readonly output: Pick<Terminal['output'], 'isTTY'> },
): boolean {
  return output.isTTY === true || !isUnderSystemd
}

/** The text that `serve` prints: where the service is, and a line to paste. */
export function describeStart(
  { url, firstToken, isNewStore = false }: Started,
  config: Config,
  { version, command }: Pick<Terminal, 'version' | 'command'>,
): string {
  const lines = [`Plant Store ${version}`, '', `  address   ${toListenUrl(url, config)}`]
  if (!isLoopback(config.host)) {
    lines.push('  warning   plain HTTP, open to other machines: put a TLS proxy in front')
  }
  if (config.publicUrl !== undefined) lines.push(`  public    ${config.publicUrl}`)
  // The part after # stays in the browser.
  lines.push(
    `  page      ${url}/${firstToken ? `#token=${firstToken}` : ''}`,
    `  document  ${url}/openapi.json (to read and try: ${url}/docs)`,
    `  store     ${describeStore(config)}${isNewStore ? ' (new: there was none)' : ''}`,
  )
  if (config.workers > 1) lines.push(`  workers   ${config.workers}`)
  if (firstToken) lines.push(`  token     ${firstToken} (shown once; keep it)`)
  const token = firstToken ?? toTokenText(config)
  if (token === '$TOKEN') lines.push('', ...explainToken(config, command))
  // The first plant of a new store has the id 1; later, that id may be taken.
  const id = firstToken ? 1 : Math.trunc(Date.now() / 1000)
  lines.push('', 'Store a plant:', '', `  ${toCurl(url, token, id)}`, '')
  return lines.join('\n')
}

/** How to get a token where none was printed. */
function explainToken(config: Config, command: string): string[] {
  if (config.storeLocation.label === inMemory) {
    return ['A store in memory has no token unless PLANT_STORE_TOKEN_FILE names a file with one.']
  }
  const user = config.isUnderSystemd ? ', as the user that runs this service' : ''
  const create = `${command} token create --name me${toFlag(config)}`
  return [`Make a token${user}:`, '', `  TOKEN=$(${create})`]
}

/** The address that the service listens on, which cannot be pasted if it is a wildcard. */
export function toListenUrl(url: string, { host }: Config): string {
  const wildcard = { '0.0.0.0': '0.0.0.0', '::': '[::]' }[host]
  return wildcard === undefined ? url : `http://${wildcard}:${new URL(url).port}`
}

function describeStore({ storeLocation: { label } }: Config): string {
  return label === inMemory ? `${label} (in memory: everything is lost when it stops)` : label
}

/** The token of the operator as a shell finds it, or the variable for a new one. */
function toTokenText({ operatorToken, operatorTokenFile }: Config): string {
  if (operatorTokenFile !== undefined) return `$(cat ${toShellWord(operatorTokenFile)})`
  return operatorToken ? '$PLANT_STORE_TOKEN' : '$TOKEN'
}

/** The flag by which a command in another terminal finds the same store. */
function toFlag({ storeLocation }: Config): string {
  if (storeLocation.engine === 'postgres') return ' --database "$DATABASE_URL"'
  const { label } = storeLocation
  return label === defaultDatabaseUrl ? '' : ` --database ${toShellWord(label)}`
}

function toShellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function toCurl(url: string, token: string, id: number): string {
  const plant = `{"id":${id},"name":"Monstera deliciosa","tag":"indoor"}`
  return `curl ${url}/plants -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '${plant}'`
}
