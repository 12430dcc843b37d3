/** The entity tag of a version. */
export function toETag(version: bigint): string {
  return `"${version.toString(16)}"`
}

/** The version that an entity tag names, without its quotes; undefined if none of ours is written so. */
export function toVersion(value: string): bigint | undefined {
  return /^(?:0|[1-9a-f][0-9a-f]{0,15})$/.test(value) ? BigInt(`0x${value}`) : undefined
}
