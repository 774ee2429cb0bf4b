import lodash from 'lodash'

export default () => () => lodash.groupBy(['loom', 'warp', 'weft'], (word) => word[0])
