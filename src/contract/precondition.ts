/** States of a plant that a client named, or `*` for any. */
export type States = '*' | readonly bigint[]

/** Under which condition a client wants something done (RFC 9110, section 13). */
export interface Precondition {
  /** If-Match. */
  readonly match?: States | undefined
  /** If-None-Match. */
  readonly noneMatch?: States | undefined
}

/** Which part of a precondition fails for a plant in this state, `undefined` being no plant. */
export function findFailure(
  { match, noneMatch }: Precondition,
  version: bigint | undefined,
): keyof Precondition | undefined {
  if (match !== undefined && !includes(match, version)) return 'match'
  if (noneMatch !== undefined && includes(noneMatch, version)) return 'noneMatch'
  return undefined
}

function includes(states: States, version: bigint | undefined): boolean {
  return version !== undefined && (states === '*' || states.includes(version))
}
