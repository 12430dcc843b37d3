/** Whether this host, as in a URL or without brackets, is the machine itself. */
export function isLoopback(host: string): boolean {
  return /^(([^.]+\.)*localhost|\[?::1\]?|127(\.\d+){3})$/.test(host)
}
