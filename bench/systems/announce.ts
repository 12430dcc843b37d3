/** Prints the address, which the parent process waits for. */
export function announce(address: unknown): void {
  console.log(`address   http://127.0.0.1:${(address as { port: number }).port}`)
}
