import { WrongConfig } from '../config.ts'
import { plantScopes } from '../contract/scopes.ts'
import type { Store, TokenRecord } from '../store/store.ts'
import { hashToken, issueToken, isWellFormed, tokenPrefix } from '../tokens/issue.ts'
import type { Call, Printed } from './commands.ts'
import { standardStream } from './files.ts'
import { toName } from './stores.ts'
import { type Terminal, toCount, toPrintable, toTable, toTime } from './terminal.ts'

/** Makes a token and prints it alone on standard output, so that `TOKEN=$(…)` works. */
export async function createToken(call: Call<'token create'>): Promise<Printed> {
  const { store, flags, config } = call
  const now = Date.now()
  const { name, scope: scopes = plantScopes, expires: expiresAt } = flags
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
export async function listTokens({ store }: Call<'token list'>): Promise<Printed> {
  const views = (await store.listTokens()).map(toView)
  const table = toTable(views, {
    ID: ({ id }) => id,
    'ENDS IN': ({ lastFour }) => lastFour ?? '-',
    NAME: ({ name }) => toPrintable(name),
    SCOPES: ({ scopes }) => scopes.join(','),
    STATE: ({ state }) => state,
    CREATED: ({ createdAt }) => toTime(createdAt),
    EXPIRES: ({ expiresAt }) => toTime(expiresAt, 'never'),
    'LAST USED': ({ lastUsedAt }) => toTime(lastUsedAt, 'never'),
  })
  const note = 'There is no token yet. Make one: plant-store token create --name NAME'
  return { json: views, text: table.join('\n'), note }
}

/** Revokes a token, named by its id or by the token itself. Every process refuses it within 1 s. */
export async function revokeToken(call: Call<'token revoke'>): Promise<Printed> {
  const { store, config, terminal } = call
  const [argument = ''] = call.args
  const given = argument === standardStream ? await readGiven(terminal) : argument
  const id = given.startsWith(tokenPrefix) ? await findId(store, given) : given
  const outcome = id === undefined ? 'unknown' : await store.revokeToken(id, Date.now())
  if (outcome !== 'unknown') return { json: { id, outcome }, note: `Token ${id} was ${outcome}.` }
  // Anything else may be a token, a PLANT_STORE_TOKEN or a JSON Web Token.
  const what = /^tok_\w+$/.test(given) ? `the id ${given}` : 'this value'
  throw new WrongConfig([
    `No token in ${toName(config.storeLocation)} has ${what}. See: plant-store token list`,
  ])
}

/** Longer than any token or id, with white space around it. */
const maxGivenLength = 1_000

async function readGiven({ input }: Pick<Terminal, 'input'>): Promise<string> {
  let given = ''
  for await (const chunk of input) {
    given += chunk
    if (given.length > maxGivenLength) throw new WrongConfig(['Standard input is not a token.'])
  }
  return given.trim()
}

/** The id of a token, which is never repeated in a message. */
async function findId(store: Store, given: string): Promise<string | undefined> {
  if (isWellFormed(given)) return (await store.findToken(hashToken(given)))?.id
  throw new WrongConfig(['This is not a whole token: its checksum is wrong. Nothing was revoked.'])
}

/** How many tokens one step deletes. */
const stepTokens = 1_000

/** Deletes the tokens that are expired or revoked, which no request can use. */
export async function pruneTokens({ store, config }: Call<'token prune'>): Promise<Printed> {
  const views = (await store.listTokens()).map(toView)
  const ids = views.filter(({ state }) => state !== 'active').map(({ id }) => id)
  let pruned = 0
  for (let start = 0; start < ids.length; start += stepTokens) {
    pruned += await store.deleteTokens(ids.slice(start, start + stepTokens))
  }
  const note = `Forgot ${toCount(pruned, 'tokens')} of ${toName(config.storeLocation)}.`
  return { json: { pruned }, note }
}

/** A token as it is shown: never the token itself. */
function toView(record: TokenRecord) {
  const { id, name, scopes, createdAt, expiresAt, revokedAt, lastUsedAt, lastFour } = record
  const isExpired = expiresAt !== undefined && expiresAt <= Date.now()
  const state = revokedAt !== undefined ? 'revoked' : isExpired ? 'expired' : 'active'
  return { id, name, scopes, state, createdAt, expiresAt, revokedAt, lastUsedAt, lastFour }
}
