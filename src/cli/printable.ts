/** Characters that a terminal obeys instead of showing: controls, line ends, text direction. */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/**
 * Text that is safe to show on one line: an unprintable character becomes an escape like \u001b.
 */
export function toPrintable(text: string): string {
  return text.replaceAll(
    unprintable,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
