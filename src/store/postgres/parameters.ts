import { UnusableStore } from '../store.ts'

/** The parameters of an address that are taken. They mean what they mean for libpq. */
const names = [
  'host',
  'port',
  'sslmode',
  'ssl',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'sslnegotiation',
  'channel_binding',
  'connect_timeout',
  'keepalives',
  'keepalives_idle',
  'keepalives_interval',
  'keepalives_count',
  'prepare',
  'target_session_attrs',
  'application_name',
  'options',
] as const
type Name = (typeof names)[number]

export type Parameters = Readonly<Partial<Record<Name, string>>>

/** Parameters of libpq that are refused for another reason than that nobody knows them. */
const refusals: Readonly<Record<string, string>> = {
  tcp_user_timeout:
    'which Node.js cannot set: leave it out. A server that is silent for a second is given up.',
}

/** Reads the parameters of an address, or throws `UnusableStore` with the first mistake. */
export function readParameters(query: string): Parameters {
  const parameters: Partial<Record<Name, string>> = {}
  for (const [name, value] of decode(query)) {
    if (!isName(name)) throw new UnusableStore(explainRefusal(name))
    if (parameters[name] !== undefined) {
      throw new UnusableStore(`DATABASE_URL has the parameter ${name} twice: leave one out.`)
    }
    if (value === '') throw new UnusableStore(`The parameter ${name} of DATABASE_URL is empty.`)
    parameters[name] = value
  }
  return parameters
}

/** One parameter; undefined when there is none. The others are not looked at. */
export function findParameter(query: string, sought: Name): string | undefined {
  return decode(query).find(([name]) => name === sought)?.[1]
}

/** A plus sign is itself, as for libpq: file names may have one. */
function decode(query: string): [name: string, value: string][] {
  return [...new URLSearchParams(query.replaceAll('+', '%2B'))]
}

function isName(name: string): name is Name {
  return (names as readonly string[]).includes(name)
}

function explainRefusal(name: string): string {
  const refusal = Object.hasOwn(refusals, name) ? refusals[name] : undefined
  if (refusal !== undefined) return `DATABASE_URL has the parameter ${name}, ${refusal}`
  const shown = /^\w{1,40}$/.test(name) ? name : 'without a proper name'
  return `DATABASE_URL has an unknown parameter ${shown}: it may have ${names.join(', ')}.`
}

export function requireOneOf<Value extends string>(
  parameters: Parameters,
  name: Name,
  values: readonly Value[],
): Value | undefined {
  const given = parameters[name]
  const value = values.find((candidate) => candidate === given)
  if (given === value) return value
  const expected = values.join(', ').replace(/, ([^,]*)$/, ' or $1')
  throw new UnusableStore(`The parameter ${name} of DATABASE_URL must be ${expected}.`)
}

/** A whole number from 1 to `largest`. For libpq, 0 means no limit, or the system's own. */
export function requireNumber(
  parameters: Parameters,
  name: Name,
  largest: number,
): number | undefined {
  const given = parameters[name]
  if (given === undefined) return undefined
  const value = /^\d{1,9}$/.test(given) ? Number(given) : 0
  if (value >= 1 && value <= largest) return value
  throw new UnusableStore(
    `The parameter ${name} of DATABASE_URL must be a whole number from 1 to ${largest}.`,
  )
}
