/** Ordering keys fall into so many slots. Of several processes on a server one delivers the events of a slot. */
export const SLOTS = 64

/** The slot of a row's key: null without a key. */
export const SLOT = '(hashtext(key) & 63)'
