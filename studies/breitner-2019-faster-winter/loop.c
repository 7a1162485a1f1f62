/* Counts a global down from COUNT, which is the whole work of the interpreter that is weighed. */
unsigned int i;

void init(void)
{
    i = COUNT;
    while (i--) {
    }
}
