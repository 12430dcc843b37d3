import { type Config, WrongConfig } from '../../config.ts'
import type { Store } from '../../store/store.ts'
import { hashToken, isWellFormed, tokenPrefix } from '../../tokens/format.ts'
import { standardStream } from '../files/input.ts'
import type { JsonFlags } from '../flags.ts'
import { requireExisting, toName } from '../stores/location.ts'
import { withStore } from '../stores/with-store.ts'
import type { InputStream, Terminal } from '../terminal.ts'

/** More than any id or token has. */
const maxInputCharacters = 1_000

/** Revokes a token, by its id or by itself. Every process refuses it within a second. */
export async function revokeToken(
  argument: string,
  flags: JsonFlags,
  config: Config,
  terminal: Terminal,
): Promise<void> {
  requireExisting(config)
  const given = argument === standardStream ? await readLine(terminal.input) : argument
  await withStore(config, async (store) => {
    const id = await findId(store, given, config)
    const outcome = await store.revokeToken(id, Date.now())
    if (outcome === 'unknown') throw unknownToken(`the id ${given}`, config)
    if (flags.json) await terminal.print(`${JSON.stringify({ id, outcome })}\n`)
    else terminal.tell(`Token ${id} was ${outcome}.`)
  })
}

/** The id of a token. A token itself is never repeated in a message. */
async function findId(store: Store, given: string, config: Config): Promise<string> {
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

function unknownToken(what: string, { storeLocation }: Config): WrongConfig {
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
