/** How many timers keep the process alive. */
export function countTimers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}
