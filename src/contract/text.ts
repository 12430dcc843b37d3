/** Whether every engine can store this text and return it byte for byte. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** The longest text to search for, in characters. */
export const maxSearchedCharacters = 1_000

/** Whether a text can be searched for. */
export function isSearchable(text: string): boolean {
  return isStorable(text) && [...text].length <= maxSearchedCharacters
}

export const expectedSearch = `text of at most ${maxSearchedCharacters} characters, without NUL characters`
