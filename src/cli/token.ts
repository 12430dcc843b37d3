import { type Config, WrongConfig } from '../config.ts'
import { scopes } from '../contract/scopes.ts'
import type { TokenRecord } from '../store/store.ts'
import { issueToken } from '../tokens/issue.ts'
import { requireExisting, requireKept } from './store-location.ts'
import type { Terminal } from './terminal.ts'
import { withStore } from './with-store.ts'

const msPerUnit: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const maxNameLength = 200

export interface CreateFlags {
  readonly name: string
  readonly scope?: string
  readonly expires?: string
  readonly json?: boolean
}

/** Makes a token and prints it, alone on standard output, so that `TOKEN=$(…)` works. */
export async function createToken(
  flags: CreateFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  const request = toRequest(flags)
  requireKept(config)
  await withStore(config, async (store) => {
    const { token, record } = await issueToken(store, request)
    if (flags.json) {
      terminal.print(`${JSON.stringify({ token, ...toView(record) }, null, 2)}\n`)
      return
    }
    terminal.print(`${token}\n`)
    const until = record.expiresAt ? `until ${toText(record.expiresAt)}` : 'until it is revoked'
    terminal.errors.write(
      `Token ${record.id} ("${record.name}") may ${record.scopes.join(' and ')} ${until}. It is shown once: keep it.\n`,
    )
  })
}

/** Lists every token: what is known of it, never the token itself. */
export async function listTokens(
  flags: { readonly json?: boolean },
  config: Config,
  terminal: Terminal,
): Promise<void> {
  requireExisting(config)
  await withStore(config, async (store) => {
    const views = (await store.listTokens()).map(toView)
    if (flags.json) terminal.print(`${JSON.stringify(views, null, 2)}\n`)
    else if (views.length === 0)
      terminal.errors.write('There is no token yet: plant-store token create --name NAME\n')
    else terminal.print(toTable(views))
  })
}

/** Revokes a token: every process that serves this store refuses it within a second. */
export async function revokeToken(
  id: string,
  flags: { readonly json?: boolean },
  config: Config,
  terminal: Terminal,
): Promise<void> {
  requireExisting(config)
  await withStore(config, async (store) => {
    const outcome = await store.revokeToken(id, Date.now())
    if (outcome === 'unknown') {
      throw new WrongConfig([`No token has the id ${id}. See: plant-store token list`])
    }
    if (flags.json) terminal.print(`${JSON.stringify({ id, outcome })}\n`)
    else terminal.errors.write(`Token ${id} was ${outcome}.\n`)
  })
}

function toRequest({ name, scope, expires }: CreateFlags) {
  const mistakes: string[] = []
  if (name.length === 0 || name.length > maxNameLength || /\p{C}/u.test(name)) {
    mistakes.push(`--name must have 1 to ${maxNameLength} printable characters.`)
  }
  const wanted = scope?.split(',').map((part) => part.trim()) ?? scopes
  if (!wanted.every((part) => (scopes as readonly string[]).includes(part))) {
    mistakes.push(`--scope must be a list of ${scopes.join(' and ')}, with commas between.`)
  }
  const lifetime = /^([1-9]\d{0,4})([smhd])$/.exec(expires ?? '')
  if (expires !== undefined && lifetime === null) {
    mistakes.push('--expires must be a number of at most 5 digits and s, m, h or d, such as 90d.')
  }
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  const lifetimeMs = lifetime
    ? Number(lifetime[1]) * (msPerUnit[lifetime[2] ?? ''] as number)
    : undefined
  return { name, scopes: scopes.filter((known) => wanted.includes(known)), lifetimeMs }
}

function toView(record: TokenRecord) {
  return {
    id: record.id,
    name: record.name,
    scopes: record.scopes,
    state: toState(record),
    createdAt: toText(record.createdAt),
    expiresAt: toText(record.expiresAt),
    revokedAt: toText(record.revokedAt),
    lastUsedAt: toText(record.lastUsedAt),
  }
}

function toState({ revokedAt, expiresAt }: TokenRecord): string {
  if (revokedAt !== undefined) return 'revoked'
  return expiresAt !== undefined && expiresAt <= Date.now() ? 'expired' : 'active'
}

function toText(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString()
}

function toTable(views: ReturnType<typeof toView>[]): string {
  const titles = ['ID', 'NAME', 'SCOPES', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED']
  const rows = views.map((view) => [
    view.id,
    view.name,
    view.scopes.join(','),
    view.state,
    view.createdAt ?? '-',
    view.expiresAt ?? 'never',
    view.lastUsedAt ?? 'never',
  ])
  const table = [titles, ...rows]
  const widths = titles.map((_, column) =>
    Math.max(...table.map((row) => row[column]?.length ?? 0)),
  )
  const lines = table.map((row) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '),
  )
  return `${lines.map((line) => line.trimEnd()).join('\n')}\n`
}
