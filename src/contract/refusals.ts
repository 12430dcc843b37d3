/** Why a request or a connection is refused before it can harm others. Metrics count them. */
export const refusalReasons = [
  'body_memory',
  'connections',
  'exports',
  'imports',
  'keys_of_token',
  'log_size',
  'rate_limit',
  'event_streams',
  'read_queue',
  'shutdown',
  'waiting_on_connection',
  'write_queue',
  'other',
] as const

export type RefusalReason = (typeof refusalReasons)[number]
