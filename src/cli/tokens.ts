import { type StoreConfig, WrongConfig } from '../config.ts'
import { toMs } from '../contract/durations.ts'
import { plantScopes, scopes } from '../contract/scopes.ts'
import { butNot } from '../contract/wrong-value.ts'
import type { Store, TokenRecord } from '../store/store.ts'
import { hashToken, isWellFormed, tokenPrefix } from '../tokens/format.ts'
import { issueToken, type TokenRequest } from '../tokens/issue.ts'
import { standardStream } from './files.ts'
import { type JsonFlags, pickNames } from './flags.ts'
import { toCount } from './progress.ts'
import { requireExistingOrNamed, toName, withExistingStore, withStore } from './stores.ts'
import { type Context, type InputStream, printOrUndo, toPrintable, toTable } from './terminal.ts'

const maxNameLength = 200

interface CreateFlags extends JsonFlags {
  readonly name: string
  readonly scope?: string
  readonly expires?: string
  readonly create?: boolean
}

/** Makes a token and prints it alone on standard output, so that `TOKEN=$(…)` works. */
export async function createToken(
  flags: CreateFlags,
  { config, terminal }: Context,
): Promise<void> {
  const now = Date.now()
  const request = toRequest(flags, now)
  requireExistingOrNamed(config, flags)
  await withStore(config.storeLocation, async (store) => {
    const { token, record } = await issueToken(store, request, now)
    const text = flags.json ? JSON.stringify({ token, ...toView(record) }, null, 2) : token
    await printOrUndo(terminal, `${text}\n`, () => store.deleteTokens([record.id]))
    const noun = record.scopes.length === 1 ? 'scope' : 'scopes'
    const end = record.expiresAt ? `expires at ${toTime(record.expiresAt)}` : 'does not expire'
    terminal.tell(
      `Token ${record.id} ("${record.name}") has the ${noun} ${record.scopes.join(', ')} and ${end}. It is shown only once. Store: ${toName(config.storeLocation)}`,
    )
  })
}

function toRequest({ name, scope, expires }: CreateFlags, now: number): TokenRequest {
  const mistakes: string[] = []
  if (name.length === 0 || name.length > maxNameLength || /\p{C}/u.test(name)) {
    mistakes.push(`--name must have 1 to ${maxNameLength} printable characters.`)
  }
  const wanted = scope === undefined ? plantScopes : pickNames(scope, scopes)
  if (wanted === undefined) {
    mistakes.push(
      `--scope must be one or more of ${scopes.join(', ')}, separated by commas${butNot(`${scope}`)}.`,
    )
  }
  const expiresAt = expires === undefined ? undefined : toExpiry(expires, now)
  if (expires !== undefined && expiresAt === undefined) {
    mistakes.push(`--expires must be ${expectedExpiry}${butNot(expires)}.`)
  }
  if (mistakes.length > 0) throw new WrongConfig(mistakes)
  return {
    name,
    scopes: wanted ?? [],
    lifetimeMs: expiresAt === undefined ? undefined : expiresAt - now,
  }
}

/** The last millisecond that a date can be, in JavaScript and in RFC 3339. */
const endOfTime = Date.UTC(9999, 11, 31)

const expectedExpiry =
  'a number of s, m, h, d or y such as 90d, or a future date such as 2030-01-31'

/** When a token expires: after a time such as 90d or 1y, or at the start of a day in UTC. */
export function toExpiry(text: string, now: number): number | undefined {
  const time = toTimeAfter(text, now) ?? toDay(text)
  return time !== undefined && time > now && time <= endOfTime ? time : undefined
}

function toTimeAfter(text: string, now: number): number | undefined {
  if (!/^[1-9]\d{0,4}[smhdy]$/.test(text)) return undefined
  const ms = toMs(text)
  if (ms !== undefined) return now + ms
  const date = new Date(now)
  return date.setUTCFullYear(date.getUTCFullYear() + Number.parseInt(text, 10))
}

function toDay(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined
  const time = Date.parse(text)
  // A day like 2030-02-31 would become another one.
  const isReal = !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
  return isReal ? time : undefined
}

/** Lists every token: all that is known of it, never the token itself. */
export async function listTokens(flags: JsonFlags, { config, terminal }: Context): Promise<void> {
  await withExistingStore(config, async (store) => {
    const views = (await store.listTokens()).map(toView)
    if (flags.json) await terminal.print(`${JSON.stringify(views, null, 2)}\n`)
    else if (views.length === 0)
      terminal.tell('There is no token yet. Make one: plant-store token create --name NAME')
    else await terminal.print(toTokenTable(views))
  })
}

function toTokenTable(views: readonly TokenView[]): string {
  const titles = ['ID', 'ENDS IN', 'NAME', 'SCOPES', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED']
  const rows = views.map((view) => [
    view.id,
    view.lastFour ?? '-',
    toPrintable(view.name),
    view.scopes.join(','),
    view.state,
    view.createdAt ?? '-',
    view.expiresAt ?? 'never',
    view.lastUsedAt ?? 'never',
  ])
  return `${toTable([titles, ...rows]).join('\n')}\n`
}

/** Longer than any id or token. */
const maxInputCharacters = 1_000

/** Revokes a token, named by its id or by the token itself. Every process refuses it within 1 s. */
export async function revokeToken(
  argument: string,
  flags: JsonFlags,
  { config, terminal }: Context,
): Promise<void> {
  await withExistingStore(config, async (store) => {
    const given = argument === standardStream ? await readLine(terminal.input) : argument
    const id = await findId(store, given, config)
    const outcome = await store.revokeToken(id, Date.now())
    // Anything else may be a PLANT_STORE_TOKEN or a JSON Web Token.
    const isId = /^tok_\w+$/.test(given)
    if (outcome === 'unknown') throw unknownToken(isId ? `the id ${given}` : 'this value', config)
    if (flags.json) await terminal.print(`${JSON.stringify({ id, outcome })}\n`)
    else terminal.tell(`Token ${id} was ${outcome}.`)
  })
}

/** The id of a token. A token itself is never repeated in a message. */
async function findId(store: Store, given: string, config: StoreConfig): Promise<string> {
  if (!given.startsWith(tokenPrefix)) return given
  if (!isWellFormed(given)) {
    throw new WrongConfig([
      'This is not a whole token: its checksum is wrong. Nothing was revoked.',
    ])
  }
  const record = await store.findToken(hashToken(given))
  if (record === undefined) throw unknownToken('this value', config)
  return record.id
}

function unknownToken(what: string, { storeLocation }: StoreConfig): WrongConfig {
  return new WrongConfig([
    `No token in ${toName(storeLocation)} has ${what}. See: plant-store token list`,
  ])
}

async function readLine(input: InputStream): Promise<string> {
  let text = ''
  for await (const chunk of input.setEncoding('utf8')) {
    text += chunk
    if (text.length > maxInputCharacters) break
  }
  const line = text.trim()
  if (line !== '' && line.length <= maxInputCharacters && !/\s/.test(line)) return line
  throw new WrongConfig(['Standard input must hold one id or one token.'])
}

/** How many tokens one step deletes. */
const stepTokens = 1_000

/** Deletes the tokens that are expired or revoked, which no request can use. */
export async function pruneTokens(flags: JsonFlags, { config, terminal }: Context): Promise<void> {
  await withExistingStore(config, async (store) => {
    const ids = (await store.listTokens())
      .map(toView)
      .filter(({ state }) => state !== 'active')
      .map(({ id }) => id)
    let pruned = 0
    for (let start = 0; start < ids.length; start += stepTokens) {
      pruned += await store.deleteTokens(ids.slice(start, start + stepTokens))
    }
    if (flags.json) await terminal.print(`${JSON.stringify({ pruned })}\n`)
    else terminal.tell(`Forgot ${toCount(pruned, 'tokens')} of ${toName(config.storeLocation)}.`)
  })
}

/** A token as `--json` shows it: never the token itself. */
function toView(record: TokenRecord) {
  return {
    id: record.id,
    name: record.name,
    scopes: record.scopes,
    state: toState(record),
    createdAt: toTime(record.createdAt),
    expiresAt: toTime(record.expiresAt),
    revokedAt: toTime(record.revokedAt),
    lastUsedAt: toTime(record.lastUsedAt),
    lastFour: record.lastFour ?? null,
  }
}

type TokenView = ReturnType<typeof toView>

function toState({ revokedAt, expiresAt }: TokenRecord): 'active' | 'expired' | 'revoked' {
  if (revokedAt !== undefined) return 'revoked'
  return expiresAt !== undefined && expiresAt <= Date.now() ? 'expired' : 'active'
}

/** A time in RFC 3339. */
export function toTime(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString()
}
