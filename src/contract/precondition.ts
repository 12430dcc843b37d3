/** The states of a plant that a client names, or `*` for any. */
export type States = '*' | readonly bigint[]

/** The conditions of a request (RFC 9110, section 13). Without any, it always holds. */
export interface Precondition {
  /** If-Match. */
  readonly match?: States | undefined
  /** If-None-Match. */
  readonly noneMatch?: States | undefined
}

/** The condition that this version does not meet. An undefined version means no plant. */
export function findUnmet(
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
