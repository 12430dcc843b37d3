import { type Config, WrongConfig } from '../../config.ts'
import { scopes } from '../../contract/scopes.ts'
import { issueToken, type TokenRequest } from '../../tokens/issue.ts'
import { requireKept } from '../stores/location.ts'
import { withStore } from '../stores/with-store.ts'
import type { Terminal } from '../terminal.ts'
import { printToken } from './print.ts'
import { toTime, toView } from './view.ts'

const msPerUnit: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const maxNameLength = 200

export interface CreateFlags {
  readonly name: string
  readonly scope?: string
  readonly expires?: string
  readonly json?: boolean
}

/** Makes a token and prints it alone on standard output, so that `TOKEN=$(…)` works. */
export async function createToken(
  flags: CreateFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  const request = toRequest(flags)
  requireKept(config)
  await withStore(config, async (store) => {
    const issued = await issueToken(store, request)
    const { token, record } = issued
    const text = flags.json ? JSON.stringify({ token, ...toView(record) }, null, 2) : token
    await printToken(store, issued, () => terminal.print(`${text}\n`))
    const until = record.expiresAt ? `until ${toTime(record.expiresAt)}` : 'until it is revoked'
    terminal.tell(
      `Token ${record.id} ("${record.name}") may ${record.scopes.join(' and ')} ${until}. It is shown only once.`,
    )
  })
}

function toRequest({ name, scope, expires }: CreateFlags): TokenRequest {
  const mistakes: string[] = []
  if (name.length === 0 || name.length > maxNameLength || /\p{C}/u.test(name)) {
    mistakes.push(`--name must have 1 to ${maxNameLength} printable characters.`)
  }
  const wanted = scope?.split(',').map((part) => part.trim()) ?? scopes
  if (!wanted.every((part) => (scopes as readonly string[]).includes(part))) {
    mistakes.push(`--scope must be one or more of ${scopes.join(', ')}, separated by commas.`)
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
