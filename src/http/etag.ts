/** The entity tag of a version. */
export function toETag(version: bigint): string {
  return `"${version.toString(16)}"`
}

/** The version in an entity tag without quotes; undefined for a tag that is not ours. */
export function toVersion(value: string): bigint | undefined {
  return /^(?:0|[1-9a-f][0-9a-f]{0,15})$/.test(value) ? BigInt(`0x${value}`) : undefined
}
