/** Runs a task periodically, with a pause after each run. Returns a function that stops it. */
export function repeat(
  task: () => Promise<void>,
  pauseMs: number,
  onError: (error: unknown) => void,
): () => void {
  let timer = setTimeout(run, pauseMs).unref()
  let isStopped = false

  async function run(): Promise<void> {
    await task().catch(onError)
    if (!isStopped) timer = setTimeout(run, pauseMs).unref()
  }

  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
