/** Builds the source of idempotency keys: a random part for each client, and a count. */
export function buildKeys(): () => string {
  let prefix: string | undefined
  let count = 0
  return () => {
    prefix ??= randomText()
    count++
    return `${prefix}-${count}`
  }
}

/** 128 random bits. `randomUUID` is missing on pages that came over plain HTTP. */
function randomText(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
