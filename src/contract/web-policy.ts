/**
 * The web pages may load and call this service, and nothing else. Text can never become markup or
 * script (Trusted Types), and no other page can frame them.
 */
export const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** Keeps a page that opened this one from reaching it. */
export const openerPolicy = 'same-origin'

/** Hides the address of a page from other sites. */
export const referrerPolicy = 'no-referrer'
