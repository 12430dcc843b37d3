import { type StoreConfig, WrongConfig } from '../config.ts'
import { plantScopes } from '../contract/scopes.ts'
import type { Store, TokenRecord } from '../store/store.ts'
import { hashToken, isWellFormed, tokenPrefix } from '../tokens/format.ts'
import { issueToken } from '../tokens/issue.ts'
import type { Call, Printed } from './command.ts'
import { standardStream } from './files.ts'
import type { tokenFlags } from './flag-tables.ts'
import { toExpiry } from './flags.ts'
import { toCount } from './progress.ts'
import { toName } from './stores.ts'
import { type InputStream, toPrintable, toTable } from './terminal.ts'

/** Makes a token and prints it alone on standard output, so that `TOKEN=$(…)` works. */
export async function createToken(call: Call<typeof tokenFlags, 'new store'>): Promise<Printed> {
  const { store, flags, config } = call
  const now = Date.now()
  const { name, scope: scopes = plantScopes, expires } = flags
  const expiresAt = expires === undefined ? undefined : toExpiry(expires, now)
  const lifetimeMs = expiresAt === undefined ? undefined : expiresAt - now
  const { token, record } = await issueToken(store, { name, scopes, lifetimeMs }, now)
  const noun = record.scopes.length === 1 ? 'scope' : 'scopes'
  const end = record.expiresAt ? `expires at ${toTime(record.expiresAt)}` : 'does not expire'
  const remark = `Token ${record.id} ("${record.name}") has the ${noun} ${record.scopes.join(', ')} and ${end}. It is shown only once. Store: ${toName(config.storeLocation)}`
  return {
    text: token,
    json: { token, ...toView(record) },
    undo: () => store.deleteTokens([record.id]),
    remarks: [remark],
  }
}

/** Lists every token: all that is known of it, never the token itself. */
export async function listTokens({ store }: Call): Promise<Printed> {
  const views = (await store.listTokens()).map(toView)
  if (views.length > 0) return { json: views, text: toTokenTable(views) }
  const note = 'There is no token yet. Make one: plant-store token create --name NAME'
  return { json: views, note }
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
  return toTable([titles, ...rows]).join('\n')
}

/** Longer than any id or token. */
const maxInputCharacters = 1_000

/** Revokes a token, named by its id or by the token itself. Every process refuses it within 1 s. */
export async function revokeToken({ args, store, config, terminal }: Call): Promise<Printed> {
  const [argument = ''] = args
  const given = argument === standardStream ? await readLine(terminal.input) : argument
  const id = await findId(store, given, config)
  const outcome = await store.revokeToken(id, Date.now())
  // Anything else may be a PLANT_STORE_TOKEN or a JSON Web Token.
  const isId = /^tok_\w+$/.test(given)
  if (outcome === 'unknown') throw unknownToken(isId ? `the id ${given}` : 'this value', config)
  return { json: { id, outcome }, note: `Token ${id} was ${outcome}.` }
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
export async function pruneTokens({ store, config }: Call): Promise<Printed> {
  const views = (await store.listTokens()).map(toView)
  const ids = views.filter(({ state }) => state !== 'active').map(({ id }) => id)
  let pruned = 0
  for (let start = 0; start < ids.length; start += stepTokens) {
    pruned += await store.deleteTokens(ids.slice(start, start + stepTokens))
  }
  const note = `Forgot ${toCount(pruned, 'tokens')} of ${toName(config.storeLocation)}.`
  return { json: { pruned }, note }
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
