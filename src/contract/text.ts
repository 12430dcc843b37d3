/** Whether every engine can store this text and return it byte for byte. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}
