/** A reviver of `JSON.parse` also gets the text of a number, with every digit. */
interface JSON {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context?: { readonly source?: string }) => unknown,
  ): unknown
}
