import { type Config, defaultDatabaseUrl } from '../../config.ts'

/** A service that has just started. */
export interface Started {
  readonly url: string
  readonly firstToken: string | undefined
}

/** The text that `serve` prints: where the service is, and a line to paste. */
export function describeStart(
  { url, firstToken }: Started,
  config: Config,
  version: string,
): string {
  const lines = [
    `Plant Store ${version}`,
    '',
    `  address   ${url}`,
    `  document  ${url}/openapi.json (to read: ${url}/docs)`,
    `  store     ${describeStore(config)}`,
  ]
  if (config.workers > 1) lines.push(`  workers   ${config.workers}`)
  if (firstToken) lines.push(`  token     ${firstToken} (shown once; keep it)`)
  const token = firstToken ?? (config.operatorToken ? '$PLANT_STORE_TOKEN' : '$TOKEN')
  if (token === '$TOKEN') {
    const create = `npx plant-store token create --name me${toFlag(config)}`
    lines.push('', 'Make a token:', '', `  TOKEN=$(${create})`)
  }
  // The first plant of a new store has the id 1; later, that id may be taken.
  const id = firstToken ? 1 : Math.trunc(Date.now() / 1000)
  lines.push('', 'Store a plant:', '', `  ${toCurl(url, token, id)}`, '')
  return lines.join('\n')
}

function describeStore({ storeLocation: { label } }: Config): string {
  return label === 'sqlite::memory:'
    ? `${label} (in memory: everything is lost when it stops)`
    : label
}

/** The flag by which a command in another terminal finds the same store. */
function toFlag({ storeLocation }: Config): string {
  if (storeLocation.engine === 'postgres') return ' --database "$DATABASE_URL"'
  const { label } = storeLocation
  return label === defaultDatabaseUrl ? '' : ` --database '${label}'`
}

function toCurl(url: string, token: string, id: number): string {
  const plant = `{"id":${id},"name":"Monstera deliciosa","tag":"indoor"}`
  return `curl ${url}/plants -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '${plant}'`
}
