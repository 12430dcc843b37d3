/**
 * Builds something for its first user, and keeps it. A failure, such as too many open files, is not
 * kept: the next user has it built again.
 */
export function atFirstUse<Built>(build: () => Promise<Built>): () => Promise<Built> {
  let built: Promise<Built> | undefined
  return () => {
    built ??= build().catch((error: unknown) => {
      built = undefined
      throw error
    })
    return built
  }
}
