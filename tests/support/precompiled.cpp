// The program that the tests' precompiled header belongs to; never run.
int main() { return 0; }
