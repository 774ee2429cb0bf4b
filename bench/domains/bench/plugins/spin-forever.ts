import { plugin } from '#heddle'

/** A handler that blocks its thread for ever, until its lane is stopped. */
export default plugin(({ http }) => {
  http.get('/bench/spin', (): never => {
    for (;;);
  })
})
