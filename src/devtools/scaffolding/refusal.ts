/** What is asked for cannot be done; the message says why and what can. */
export class Refusal extends Error {}
