/** Whether somebody has to look at a tool: what it refused by its caller's fault, such as an e-mail that is taken, is no alarm. */
export function isIll({ fault }) {
  return fault === 'tool'
}
