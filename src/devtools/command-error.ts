/** A command cannot be carried out. The message says why, and what is possible instead. */
export class CommandError extends Error {}
