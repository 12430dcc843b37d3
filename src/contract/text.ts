/** Whether every engine can keep this text and give it back byte for byte. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}
