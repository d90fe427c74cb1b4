import sys
def main():
    try:
        sys.exit(3)
    except Exception:
        print("no")
    finally:
        print("finally")
if __name__ == "__main__":
    main()
