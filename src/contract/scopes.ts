/** The permissions that a token can have. */
export const scopes = ['plants:read', 'plants:write', 'metrics:read'] as const
export type Scope = (typeof scopes)[number]

/** The default permissions of a token: everything that concerns plants. */
export const plantScopes = ['plants:read', 'plants:write'] as const satisfies readonly Scope[]
