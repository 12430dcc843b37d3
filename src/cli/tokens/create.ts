import { type Config, WrongConfig } from '../../config.ts'
import { plantScopes, scopes } from '../../contract/scopes.ts'
import { butNot } from '../../contract/wrong-value.ts'
import { issueToken, type TokenRequest } from '../../tokens/issue.ts'
import { requireExistingOrNamed, toName } from '../stores/location.ts'
import { withStore } from '../stores/with-store.ts'
import type { Terminal } from '../terminal.ts'
import { expectedExpiry, toExpiry } from './expiry.ts'
import { printToken } from './print.ts'
import { toTime, toView } from './view.ts'

const maxNameLength = 200

export interface CreateFlags {
  readonly name: string
  readonly scope?: string
  readonly expires?: string
  readonly create?: boolean
  readonly json?: boolean
}

/** Makes a token and prints it alone on standard output, so that `TOKEN=$(…)` works. */
export async function createToken(
  flags: CreateFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  const now = Date.now()
  const request = toRequest(flags, now)
  requireExistingOrNamed(config, flags)
  await withStore(config, async (store) => {
    const issued = await issueToken(store, request, now)
    const { token, record } = issued
    const text = flags.json ? JSON.stringify({ token, ...toView(record) }, null, 2) : token
    await printToken(store, issued, () => terminal.print(`${text}\n`))
    const until = record.expiresAt ? `until ${toTime(record.expiresAt)}` : 'until it is revoked'
    terminal.tell(
      `Token ${record.id} ("${record.name}") may ${record.scopes.join(' and ')} ${until}. It is shown only once. Store: ${toName(config.storeLocation)}`,
    )
  })
}

function toRequest({ name, scope, expires }: CreateFlags, now: number): TokenRequest {
  const mistakes: string[] = []
  if (name.length === 0 || name.length > maxNameLength || /\p{C}/u.test(name)) {
    mistakes.push(`--name must have 1 to ${maxNameLength} printable characters.`)
  }
  const wanted: readonly string[] = scope?.split(',').map((part) => part.trim()) ?? plantScopes
  if (!wanted.every((part) => (scopes as readonly string[]).includes(part))) {
    mistakes.push(
      `--scope must be one or more of ${scopes.join(', ')}, separated by commas${butNot(wanted.join(','))}.`,
    )
  }
  const expiresAt = expires === undefined ? undefined : toExpiry(expires, now)
  if (expires !== undefined && expiresAt === undefined) {
    mistakes.push(`--expires must be ${expectedExpiry}${butNot(expires)}.`)
  }
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  return {
    name,
    scopes: scopes.filter((known) => wanted.includes(known)),
    lifetimeMs: expiresAt === undefined ? undefined : expiresAt - now,
  }
}
